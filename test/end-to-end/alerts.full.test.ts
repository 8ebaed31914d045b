import { once } from 'node:events'
import t from 'tap'
import { webhookReceiver } from '../support/alerts.ts'
import { admin, runAdmin, startService } from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'
import { until } from '../support/wait.ts'

t.test('a running service sends an alert after a scan, and stops while a receiver does not answer', async (t) => {
  const receiver = await webhookReceiver(t)
  const allowed = ['--outbound-networks', '127.0.0.0/8']
  const { data: options, dataDirectory, service, send, stop } = await startSite(t, allowed)
  const url = ['--kind', 'webhook', '--url', receiver.url]
  const [added] = await admin('alert', 'channel', 'add', 'soc', ...url, ...allowed, ...options)
  t.match(added, { name: 'soc', kind: 'webhook', waiting: 0 })
  t.match(added?.['secret'], /^whsec_/)
  t.notMatch(JSON.stringify(await admin('alert', 'channel', 'list', ...options)), /whsec_|:\d+\/alerts/, 'shown once')

  // The command allows the receivers that the service allows.
  t.match(await admin('alert', 'channel', 'test', 'soc', ...options), [{ answer: '204 No Content' }])
  t.match(receiver.received.pop()?.message, { type: 'test', title: 'Test of the alert channel soc' })
  const others = ['--outbound-networks', '10.0.0.0/8']
  const refused = await runAdmin(['alert', 'channel', 'test', 'soc', ...others, ...options])
  t.match(refused, { status: 4, stderr: /ALERT_NOT_SENT soc: 127\.0\.0\.1 is on this machine/ })

  const post = async (name: string): Promise<void> => {
    t.equal(await send([name]), 200)
    await admin('scan', 'run', ...options)
  }
  await post('claude.ai')
  await until('the alert', () => receiver.received.length > 0)
  t.match(receiver.received, [{ message: { rule: 'new-platform', title: /^First scan: New AI platform: Claude/ } }])
  await until('its delivery in the list', async () => {
    const [alert] = await admin('alert', 'list', ...options)
    return alert?.['delivery'] === 'soc: delivered'
  })
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
  await until('the metrics', async () => {
    return (await metrics()).includes('posture_alert_messages_total{kind="webhook",outcome="delivered"} 1')
  })

  receiver.answer = () => 'nothing'
  await post('chatgpt.com')
  await until('a message in progress', () => receiver.received.length > 1)
  const { status, stderr } = await stop()
  t.equal(status, 0, stderr)
  t.notMatch(stderr, /whsec_|:\d+\/alerts/, 'no secret in the log')
  t.match(await admin('alert', 'list', '--limit', '1', ...options), [{ delivery: 'soc: waiting' }])

  receiver.answer = () => ({ status: 200 })
  const again = await startService(dataDirectory, allowed)
  await until('the message after the restart', () => receiver.received.length > 2)
  const [, before, after] = receiver.received
  t.same(after?.message, before?.message)
  again.child.kill('SIGTERM')
  await Promise.all([again.ended, once(again.child, 'exit')])
})
