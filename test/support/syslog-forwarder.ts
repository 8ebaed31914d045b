import { SyslogForwarder, type SyslogSettings } from '../../collector/forward/syslog.ts'

export const TOKEN = `svc_mt_${'7'.repeat(48)}`

/** A forwarder with default settings for the rest. It is closed when the test ends. */
export function syslogForwarder(
  t: { teardown(work: () => unknown): void },
  settings: Partial<SyslogSettings>,
): SyslogForwarder {
  const forwarder = new SyslogForwarder({
    ...{ token: TOKEN, endpoint: 'localhost', httpsPort: 9443, syslogPort: 6514, syslogProtocol: 'tls' },
    ...{ ca: '', fingerprint: '' },
    ...settings,
  })
  t.teardown(() => forwarder.close())
  return forwarder
}
