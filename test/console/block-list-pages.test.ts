import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { hashSecret } from '../../engine/store/access-key.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { serveConsole } from '../support/console.ts'

const SECRET = /svc_bl_[0-9a-f]{48}/

t.test('a link is created, its secret shown once; a device downloads the list until it is revoked', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/block-lists')).text, /No active link/)
  const given = { label: 'Firewall Berlin', blocks: 'not-approved', risk: '80' }
  const answer = await admin.submit('/block-lists', given, { 'accept-encoding': 'gzip' })
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store', 'content-encoding': undefined } })
  const [secret = ''] = SECRET.exec(answer.text) ?? []
  const link = store.blockListLinks.byHash(hashSecret(secret))
  t.match(link, { label: 'Firewall Berlin', blocks: 'not-approved', riskMin: 80 })
  t.match(answer.text, `/blocklist/${link?.id}.edl`)
  const list = await admin.get('/block-lists')
  t.match(list.text, `svc_bl_${link?.visible}`)
  t.notMatch(list.text, SECRET)
  const authorization = `Basic ${Buffer.from(`firewall:${secret}`).toString('base64')}`
  const device = () => site.browser().get(`/blocklist/${link?.id}.edl`, { authorization })
  const downloaded = await device()
  t.match(downloaded, { status: 200, text: /\ndeepseek\.com\n/ })
  const file = await admin.get('/block-lists/list.txt?blocks=not-approved&risk=80&format=edl')
  t.match(file.headers, { 'content-disposition': 'attachment; filename="block-list-edl.txt"' })
  t.equal(file.text, downloaded.text, 'the page downloads the same list')
  t.equal((await admin.post(`/block-lists/${link?.id}/revoke`)).status, 303)
  t.equal((await device()).status, 401)
  t.match((await admin.get('/block-lists')).text, /1 revoked or expired/)
  const rows = await admin.rows('/block-lists.csv')
  t.match(rows, [{ Label: 'Firewall Berlin', Blocks: 'not-approved', 'Risk from': '80', Status: 'revoked' }])
  const actions = store.auditLog.ofOrganization(organization.id).map(({ action }) => action)
  t.same(actions, ['block-list-link.create', 'block-list-link.revoke'])
})

t.test('a wrong link is refused with what was typed; members and viewers see no page', async (t) => {
  const { signIn } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  const create = (fields: Readonly<Record<string, string>>) =>
    admin.submit('/block-lists', { label: 'kept', blocks: 'rejected', risk: '0', ...fields })
  t.match(await create({ risk: '101' }), { status: 400, text: /whole number from 0 to 100/ })
  t.match(await create({ blocks: 'all' }), { status: 400, text: /value="kept"/ })
  t.match(await create({ label: ' ' }), { status: 400, text: /Enter a label/ })
  for (const role of ['viewer', 'member'] as const) {
    for (const path of ['/block-lists', '/block-lists/preview', '/block-lists/list.txt']) {
      t.equal((await signIn(role, role).get(path)).status, 403, path)
    }
  }
})

t.test('the preview says what is in a list, what is left out, and why', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/block-lists/preview?blocks=rejected')).text, /The list is empty/)
  const { approvals } = new Administration(store, clock)
  approvals.reject(organization, loadCatalog(), ['deepseek'])
  const rejected = (await admin.get('/block-lists/preview?blocks=rejected&format=unbound')).text
  t.match(rejected, /1 platforms are rejected: \d+ entries/)
  t.match(rejected, /deepseek\.com<\/span>.*it and all names below.*href="\/platforms\/DeepSeek"/s)
  approvals.add(organization, loadCatalog(), ['chatgpt'])
  const leftOut = await admin.rows('/block-lists/left-out.csv?blocks=not-approved&format=edl')
  t.ok(leftOut.some(({ Reason = '' }) => /would also block .*: ChatGPT/.test(Reason)))
  const entries = await admin.rows('/block-lists/preview.csv?blocks=rejected')
  t.ok(entries.every(({ Platform }) => Platform === 'DeepSeek') && entries.length > 0)
  t.match((await admin.get('/block-lists/preview?blocks=x&risk=-1&format=x')).text, /risk from 0|not approved/)
  t.match((await admin.get('/block-lists/preview?page=2&left=2')).text, /href="\?page=1&amp;left=2"/)
})
