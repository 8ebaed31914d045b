import t from 'tap'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { scanWith, serveConsole } from '../support/console.ts'
import { makeOrganization, NOON } from '../support/store.ts'

t.test('two days are compared: new platforms, decisions, use', async (t) => {
  const site = await serveConsole(t, { startMs: NOON - 2 * DAY_MS })
  const { clock } = site
  const viewer = () => site.signIn('v', 'viewer')
  t.match((await viewer().get('/compare')).text, /No two days with a completed scan/)
  scanWith(site, ['chat.deepseek.com'])
  t.match((await viewer().get('/compare')).text, /No two days with a completed scan/)
  clock.add(DAY_MS)
  await site.signIn('a', 'admin').post('/platforms/DeepSeek/approve', {})
  scanWith(site, ['claude.ai'])
  clock.add(DAY_MS)
  scanWith(site, ['claude.ai', 'claude.ai'])
  const { text } = await viewer().get('/compare')
  t.match(text, /option value="2026-11-19" selected.*option value="2026-11-20" selected/s)
  t.match(text, /1 differ/)
  t.match(text, /href="\/platforms\/Claude">.*use<\/span>/s)
  const rows = (query: string) => viewer().rows(`/compare.csv?${query}`)
  t.match(await rows('before=2026-11-18&after=2026-11-20'), [
    { Platform: 'Claude', Change: 'new', Clients: '2', 'Clients before': '0' },
    { Platform: 'DeepSeek', Change: 'decision', Decision: 'approved', 'Decision before': 'waiting' },
  ])
  t.match(await rows('before=2026-11-20&after=2026-11-18'), [{ Change: 'gone' }, { Change: 'decision' }])
  const days = async (query: string) =>
    Array.from((await viewer().get(`/compare?${query}`)).text.matchAll(/value="([\d-]+)" selected/g), ([, day]) => day)
  for (const [query, expected] of [
    ['days=1', ['2026-11-19', '2026-11-20']],
    ['days=7', ['2026-11-18', '2026-11-20']],
    ['from=2026-11-10&to=2026-11-19', ['2026-11-18', '2026-11-19']],
    ['from=2026-11-19', ['2026-11-19', '2026-11-20']],
  ] as const)
    t.same(await days(query), expected, query)
  const linked = /href="(\/compare\.csv\?[^"]*)"/.exec((await viewer().get('/compare?before=2026-11-18')).text)
  t.match(linked?.[1], 'before=2026-11-18', 'the file has the rows of the page')
  t.match((await viewer().get('/compare?before=2026-11-20&after=2026-11-20')).text, /Nothing differs/)
  t.match((await viewer().get('/compare?before=2020-01-01&after=x')).text, /value="2026-11-20" selected/)
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.match((await foreign.get('/compare?before=2026-11-18')).text, /No two days/)
})

t.test('platforms are filtered by when they were first found', async (t) => {
  const site = await serveConsole(t, { startMs: NOON - 20 * DAY_MS })
  const { clock } = site
  scanWith(site, ['chat.deepseek.com'])
  clock.add(20 * DAY_MS)
  scanWith(site, ['claude.ai'])
  const viewer = site.signIn('v', 'viewer')
  const found = async (query: string): Promise<string[]> => {
    const rows = await viewer.rows(`/platforms.csv?${query}`)
    return rows.map(({ Platform = '' }) => Platform).sort()
  }
  t.same(await found(''), ['Claude', 'DeepSeek'])
  t.same(await found('new=7'), ['Claude'])
  t.same(await found('new=30'), ['Claude', 'DeepSeek'])
  t.match((await viewer.get('/platforms?new=7')).text, /value="7" selected.*1 of 2/s)
})
