import t from 'tap'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { serveConsole } from '../support/console.ts'
import { report } from '../support/coverage.ts'
import { NOON, registries, Sender } from '../support/store.ts'
import { openWebBrowser } from '../support/web-browser.ts'

const NAMES = [
  ...['chat.deepseek.com', 'claude.ai', 'chatgpt.com', 'gemini.google.com', 'api.openai.com', 'www.midjourney.com'],
  ...['grammarly.com', 'perplexity.ai', 'cursor.com', 'suno.com', 'character.ai', 'poe.com', 'huggingface.co'],
]

t.test(
  'the report is at most two sheets of A4 or Letter, without navigation and buttons',
  { timeout: 120_000 },
  async (t) => {
    const site = await serveConsole(t)
    const { clock, store, organization, origin } = site
    const sender = new Sender()
    const events = NAMES.map((name, at) => sender.event(name, NOON - 60_000, { client: `192.0.2.${at + 1}` }))
    const counters = { packets: 1000, names: 90, hellos_named: 90, hellos_unnamed: 10 }
    store.environment.write(() => {
      store.buffer.append(organization.id, events)
      store.coverage.add(organization.id, report({ counters }), NOON)
    })
    runScan(store, registries, organization.id, 'schedule', clock)
    const admin = site.signIn('a', 'admin')
    for (const framework of ['ai-security', 'soc-2']) {
      const { headers } = await admin.post('/assessments', { framework, title: '' })
      const path = String(headers['location'])
      const assessment = store.assessments.get(organization.id, path.slice('/assessments/'.length))
      if (assessment === undefined) throw new Error('no assessment')
      for (const [at, { items }] of store.assessments.categories(assessment).entries()) {
        for (const place of items.keys()) {
          await admin.post(`${path}/categories/${at}/items/${place}`, { answer: 'partial' })
        }
      }
      await admin.post(`${path}/complete`)
    }
    const { page, faults } = await openWebBrowser(t, 'chrome')
    const value = admin.cookies.get('__Host-session') ?? ''
    const cookie = { url: origin, path: '/', secure: true, sameSite: 'Strict' } as const
    await page.setCookie(
      { name: '__Host-session', value, ...cookie },
      { name: '__Host-theme', value: 'dark', ...cookie },
    )
    await page.goto(`${origin}/report`)
    t.equal(
      await page.$eval('button[data-prints]', (button) => (button as unknown as { hidden: boolean }).hidden),
      false,
    )
    for (const format of ['A4', 'Letter'] as const) {
      const pdf = Buffer.from(await page.pdf({ format })).toString('latin1')
      t.ok((pdf.match(/\/Type\s*\/Page\b/g)?.length ?? 9) <= 2, format)
    }
    await page.emulateMediaType('print')
    const text = await page.evaluate('document.body.innerText')
    t.match(text, /Use of AI at Acme/)
    t.match(text, /DeepSeek/)
    t.notMatch(text, /Monitoring Tokens|Sign out|Print or save as PDF|Skip to content/)
    t.equal(await page.evaluate('getComputedStyle(document.body).color'), 'rgb(22, 24, 29)', 'dark text on paper')
    t.same(faults, [])
  },
)
