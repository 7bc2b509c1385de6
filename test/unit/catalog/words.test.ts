import { describe, expect, test } from 'vitest'
import { questionTermsOf, termsOf } from '../../../src/catalog/search/synonyms.ts'
import { wordsOf } from '../../../src/catalog/search/search-words.ts'

describe('words of names and texts', () => {
  test.each([
    ['createIssueComment', 'create issue comments'],
    ['create_issue_comment', 'Creates comments: issue'],
    ['API-post-page', 'api post pages'],
    ['fetchHTTPResponses', 'fetch http response'],
    ['list PRs', 'list PR'],
    ['queries', 'query'],
    ['navigation', 'navigate'],
    ['running', 'runs'],
    ['deployments', 'deploy'],
  ])('%s reads as %s', (one, other) => {
    expect([...new Set(wordsOf(one))].sort()).toEqual([...new Set(wordsOf(other))].sort())
  })

  test('a name of two words is found written as one', () => {
    expect(wordsOf('GitHub')).toEqual(['git', 'hub', 'github'])
    expect(wordsOf('createMergeRequestDiscussion')).not.toContain('createmergerequestdiscussion')
  })

  test('words that tell nothing apart are left out, and other writing stays', () => {
    expect(wordsOf('what is the weather in Zürich')).toEqual(['weather', 'zürich'])
    expect(wordsOf('天気 v2')).toEqual(['天気', 'v', '2', 'v2'])
    expect(wordsOf('')).toEqual([])
  })
})

describe('words that mean the same', () => {
  const shared = (one: string, other: string): string[] => termsOf(one).filter((term) => termsOf(other).includes(term))

  test.each([
    ['remove a row', 'delete records'],
    ['mail', 'emails'],
    ['bug', 'create_issue'],
  ])('"%s" and "%s" share a mark and no word', (one, other) => {
    const terms = shared(one, other)
    expect(terms.length).toBeGreaterThan(0)
    expect(terms.every((term) => term.startsWith('='))).toBe(true)
  })

  test('phrases of a question are understood, each term once', () => {
    expect(questionTermsOf('merge my MR')).toEqual(expect.arrayContaining(['merg', 'mr', 'request']))
    expect(questionTermsOf('how many rows, how many?')).toContain('count')
    expect(questionTermsOf('file file files').filter((term) => term === 'fil')).toHaveLength(1)
    expect(questionTermsOf('a primer')).not.toContain('pull')
  })
})
