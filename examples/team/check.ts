/** Alice, bob and carol at work: each is listed what its group may use, the desk knows each by name, and what is not theirs is refused. */
import { saw } from '../run.ts'
import { connectLegacy, connectModern } from './hosts.ts'
import type { Host, Person } from './hosts.ts'
import { startIssuer } from './issuer.ts'
import { startTeam } from './team.ts'

await using issuer = await startIssuer()
await using team = await startTeam(issuer.issuer)
const { url } = team.trunkline

const person = async (name: string): Promise<Person> => ({
  name,
  token: await issuer.tokenOf(name, url.href),
  signIn: (page) => issuer.signIn(page, name),
})
const [alice, bob, carol] = [await person('alice'), await person('bob'), await person('carol')]
const refusal = (host: Host, tool: string): Promise<unknown> => host.call(tool).catch(String)

for (const [who, connect, isSre] of [
  [alice, connectLegacy, false],
  [bob, connectModern, true],
  [carol, connectModern, false],
] as const) {
  await using host = await connect(url, who)
  const signIn = await host.call('desk__sign_in')
  saw(`${who.name} is sent to sign in to the desk by its host`, signIn.asked.includes('url') && !signIn.isError)
  saw(`the desk knows ${who.name}`, (await host.call('desk__who_am_i')).text === `you are ${who.name}`)
  const tools = await host.listed()
  saw(`${who.name} is listed ${tools.length} tools`, tools.includes('desk__book') === isSre && tools.includes('memory__recall'))
  const price = await host.call('shop__with_shipping', { a: 2 })
  saw(`${who.name} pays for shipping, which no model sees`, price.text.includes('42'))
  if (isSre) {
    const { asked } = await host.call('memory__delete_entities', { entityNames: [] })
    saw(`${who.name} is asked before anything is deleted`, asked.includes('form'))
  } else {
    const said = await refusal(host, 'memory__delete_entities')
    saw(`${who.name} has no tool that deletes`, String(said).includes('Unknown tool'))
  }
}

await using large = await connectModern(new URL('/mcp/large', url), carol)
const found = await large.call('gateway__search_tools', { query: 'forget what is remembered' })
saw('carol searches the large toolset', found.text.includes('memory__delete_'))

const knock = async (path: string, token: string): Promise<number> =>
  (await fetch(new URL(path, url), { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: '{}' })).status
saw('alice has no /mcp/ops', (await knock('/mcp/ops', alice.token)) === 404)
saw('a token for the desk opens nothing here', (await knock('/mcp', await issuer.tokenOf('alice', team.desk.url))) === 401)

await large[Symbol.asyncDispose]()
saw('SIGTERM ends it with 0', (await team.trunkline.stop()) === 0)
const reasons = (await team.audit()).flatMap(({ reason }) => reason ?? [])
saw(
  'the audit log has every refusal',
  ['unknown', 'path', 'unauthorized'].every((reason) => reasons.includes(reason)),
)
