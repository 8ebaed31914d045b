import { createSocket } from 'node:dgram'
import { join } from 'node:path'
import t from 'tap'
import { forwardArgs, REPOSITORY, run } from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'
import { until } from '../support/wait.ts'
import { openWebBrowser, WEB_BROWSERS } from '../support/web-browser.ts'
import { signUp, submit } from '../support/web-page.ts'

/**
 * The page asks twice a second, and the first event is to be visible within 2 s. Counted in
 * questions, because a loaded machine needs longer for all.
 */
const QUESTIONS_MAX = 4
const EVENTS_ARRIVE = 'Events arrive'

for (const name of WEB_BROWSERS) {
  t.test(`${name}: setup to verified, with syslog and with a collector`, async (t) => {
    const { service, origin, directory, setupLink } = await startSite(t, ['--syslog-udp', '0', '--syslog-tls', '0'])
    const { page, faults } = await openWebBrowser(t, name)
    await signUp(page, await setupLink())
    const port = service.syslog.find(({ kind }) => kind === 'udp')?.port ?? 0
    const socket = createSocket('udp4')
    t.teardown(() => socket.close())
    const send = (text: string): Promise<unknown> =>
      new Promise((resolve) => socket.send(text, port, '127.0.0.1', resolve))
    // Not waitForFunction, whose function the content security policy blocks in Firefox.
    const shows = (text: string): Promise<unknown> =>
      until(text, async () => {
        const shown = await page.$eval('#verification', (element) => element.textContent ?? '')
        return shown.includes(text)
      })

    /** Generates a token by the setup, opens Verify, and returns the token. */
    const begin = async (label: string): Promise<string> => {
      await page.goto(`${origin}/setup-guide`)
      await page.type('#label', label)
      await submit(page, 'Generate Token')
      const token = await page.$eval('#secret', (element) => element.textContent ?? '')
      const verify = await page.$('a.button.first')
      await Promise.all([page.waitForNavigation(), verify?.click()])
      await shows('Waiting for the first event')
      return token
    }

    const branch = await begin('branch')
    const header = (host: string): string =>
      `<134>1 ${new Date().toISOString()} ${host} - - - [svc@00000 key="${branch}"] `
    await send(`${header('fw-1')}a line in no format`)
    await shows('Messages arrive, and none is an event yet')
    await shows('fw-1')
    const started = performance.now()
    let questions = 0
    page.on('request', () => questions++)
    await send(
      `${header('proxy-1')}${(Date.now() / 1000).toFixed(3)} 318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT chatgpt.com:443 - HIER_DIRECT/198.51.100.20 -`,
    )
    await shows(EVENTS_ARRIVE)
    t.comment(`visible after ${Math.round(performance.now() - started)} ms, ${questions} questions`)
    t.ok(questions > 0 && questions <= QUESTIONS_MAX, `the first event is visible after ${questions} questions`)
    await shows('ChatGPT')
    t.match(await page.title(), /^Verified/)

    const office = await begin('office')
    const capture = join(REPOSITORY, 'test/captures/demo/input.pcap')
    const flags = ['--read', capture, '--shift-to-now', '--outbox', join(directory, 'outbox')]
    const { status, stderr } = await run('collector', [...flags, ...forwardArgs(service)], { SVC_TOKEN: office })
    t.equal(status, 0, stderr)
    await shows(EVENTS_ARRIVE)
    await shows('Midjourney')
    t.same(faults, [])
  })
}
