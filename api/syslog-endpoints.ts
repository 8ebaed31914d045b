import { wildcardAddress } from '../engine/http/listen.ts'
import type { SyslogEndpoint } from '../engine/ingest/thread-protocol.ts'
import type { ListenAddress } from '../engine/process/settings.ts'
import type { ServiceSettings } from './config.ts'

/** The listeners of the threads of syslog ingest, which read dnstap, too. */
export function syslogEndpoints(settings: ServiceSettings): SyslogEndpoint[] {
  const { ingestAddress, syslogTls, syslogTcp, syslogUdp, dnstapTls, dnstapTcp } = settings
  const endpoints = (
    of: Pick<SyslogEndpoint, 'kind' | 'setting' | 'dnstap'>,
    addresses: readonly ListenAddress[],
  ): SyslogEndpoint[] =>
    addresses.map(({ address, port }) => {
      return { ...of, port, address: wildcardAddress(address === '' ? ingestAddress : address) }
    })
  return [
    ...endpoints({ kind: 'tls', setting: '--syslog-tls' }, syslogTls),
    ...endpoints({ kind: 'tcp', setting: '--syslog-tcp' }, syslogTcp),
    ...endpoints({ kind: 'udp', setting: '--syslog-udp' }, syslogUdp),
    ...endpoints({ kind: 'tls', setting: '--dnstap-tls', dnstap: true }, dnstapTls),
    ...endpoints({ kind: 'tcp', setting: '--dnstap-tcp', dnstap: true }, dnstapTcp),
  ]
}
