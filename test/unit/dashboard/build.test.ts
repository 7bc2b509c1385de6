/** The dashboard as it is built and served: small, without inline code, each file under a name of its content. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { folderAssets } from '../../../src/admin/http/assets.ts'

/** Built with the program that tests start (test/support/build.ts). */
const FOLDER = join(dirname(process.env['TEST_PROGRAM'] ?? ''), 'dashboard')
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8', withFileTypes: true })
  .filter((file) => file.isFile())
  .map((file) => join(file.parentPath, file.name))

test('all of it is below 80 kB, compressed', () => {
  const sizes = files.map((file) => gzipSync(readFileSync(file)).length)
  expect(files.length).toBeGreaterThanOrEqual(4)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(80_000)
})

test('nothing of it comes from elsewhere, and nothing is inline', () => {
  const page = readFileSync(join(FOLDER, 'index.html'), 'utf8')
  expect(page).not.toMatch(/<script(?![^>]*\ssrc="\/)|<style|\sstyle=|\son\w+=|https?:/)
  const code = files.filter((file) => file.endsWith('.js')).map((file) => readFileSync(file, 'utf8'))
  expect(code.join('')).not.toMatch(/\beval\(|new Function\(|https:\/\/(?!github\.com)/)
  const styles = files.filter((file) => file.endsWith('.css')).map((file) => readFileSync(file, 'utf8'))
  expect(styles.join('')).not.toMatch(/url\((?!['"]?\/)|@import/)
})

test('the address of a screen is the page, that of a file the file, and everything else is not there', () => {
  const assets = folderAssets(FOLDER)
  const page = assets('/')
  expect(page).toMatchObject({ type: 'text/html; charset=utf-8', isImmutable: false })
  for (const path of ['/traffic', '/calls/4711', '/tools/gh__x', '/servers/github', '/health'])
    expect(assets(path), path).toBe(page)
  const [, script = ''] = /src="([^"]+)"/.exec(page?.body.toString() ?? '') ?? []
  expect(assets(script)).toMatchObject({ type: 'text/javascript; charset=utf-8', isImmutable: true })
  for (const path of ['/nothing', '/assets/nothing.js', '/../package.json', '/assets/', '/api/x'])
    expect(assets(path), path).toBeUndefined()
})

test('a checkout in which it was not built says so', () => {
  const assets = folderAssets(join(FOLDER, 'nothing'))
  expect(assets('/')?.body.toString()).toContain('npm run build')
  expect(assets('/assets/index.js')).toBeUndefined()
})
