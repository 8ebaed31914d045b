import { parse } from 'csv-parse/sync'
import t from 'tap'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { serveConsole } from '../support/console.ts'
import { registries, Sender, scanEvents } from '../support/store.ts'

const sender = new Sender()

t.test('groups are imported, listed, and filter the clients', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const events = ['ada', 'bob', 'eve'].map((user, at) => {
    return sender.event('chat.deepseek.com', clock.nowMs(), { user, client: `10.2.0.${at}`, bytesSent: 10 ** (3 * at) })
  })
  scanEvents(site, organization, events)
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/client-groups')).text, /There is no group yet.*Import groups/s)
  t.notMatch((await admin.get('/clients')).text, /name="group"/)
  for (const [text, problem] of [
    ['ada', /row 1: expected user or address,group,manager such as/],
    [`ada,F\n`.repeat(100_000), /At most 512 KiB/],
  ] as const) {
    const refused = await admin.post('/client-groups', { text })
    t.equal(refused.status, 400)
    t.match(refused.text, problem)
  }
  const text = 'ada,Finance\nbob,Finance\neve,R&D <b>\n'
  t.match(await admin.post('/client-groups', { text }), {
    status: 303,
    headers: { location: '/client-groups?done=imported' },
  })
  const page = (await admin.get('/client-groups?done=imported')).text
  t.match(page, /The groups are imported.*href="\/clients\?group=Finance">Finance<.*1\.0.KB/s)
  t.match(page, /R&amp;D &lt;b>/)
  const rows = await admin.rows('/client-groups.csv?sort=-sent')
  t.match(rows, [
    { Group: 'R&D <b>', Kind: 'group', Members: '1', Clients: '1', Sent: '1000000' },
    {
      Group: 'Finance',
      Members: '2',
      Clients: '2',
      Platforms: '1',
      Matches: '2',
      Sent: '1001',
    },
  ])
  const clients = (await admin.get('/clients?group=Finance')).text
  t.match(clients, /<option value="Finance" selected>.*href="\/clients\/ada".*href="\/clients\/bob"/s)
  t.notMatch(clients, /href="\/clients\/eve"/)
  t.match((await admin.get('/clients?group=Nobody')).text, /No client is in the group [^<]*Nobody/)
  t.match((await admin.get('/clients/ada')).text, /<a href="\/clients\?group=Finance">Finance</)
  t.notMatch((await admin.get('/clients/ada')).text, /Data of this person/, 'for owners')
  const owner = site.signIn('o', 'owner')
  t.match(
    (await owner.get('/clients/ada')).text,
    /Data of this person.*Also the addresses 10\.2\.0\.0.*Erase permanently/s,
  )
  const exported = await owner.post('/clients/ada/export')
  t.match((parse(exported.text, { columns: true }) as object[]).slice(0, 3), [
    { Kind: 'group', Client: 'ada', About: 'Finance' },
    { Kind: 'use', When: '2026-11-20', Platform: 'deepseek', Client: '10.2.0.0', User: 'ada', Matches: '1' },
    { Kind: 'audit entry', About: /client\.read by member a/ },
  ])
  t.equal((await admin.post('/clients/ada/erase')).status, 403)
  t.match(await owner.post('/clients/ada/erase', { addresses: 'yes' }), {
    headers: { location: '/clients?done=erased' },
  })
  t.match((await owner.get('/clients?done=erased')).text, /The person is being erased/)
  runScan(store, registries, organization.id, 'administrator', clock)
  t.equal((await owner.get('/clients/ada')).status, 404)
  t.match((await owner.get('/clients?group=Finance')).text, /href="\/clients\/bob"/)
  const platform = (await admin.get('/platforms/DeepSeek')).text
  t.match(platform, /Groups<.*href="\/clients\?platform=DeepSeek&amp;group=Finance">Finance<.*>1</s)
  t.notMatch((await site.signIn('v', 'viewer').get('/platforms/DeepSeek')).text, /Finance/)
  t.equal((await site.signIn('m', 'member').get('/client-groups')).status, 403)
  t.equal((await site.signIn('m', 'member').post('/client-groups', { text })).status, 403)
})
