/** The transport of messages, by the name of the listener. */
export const LISTENER_NAMES: Readonly<Record<string, string>> = {
  tls: 'Syslog over TLS',
  tcp: 'Syslog over TCP',
  udp: 'Syslog over UDP',
  https: 'HTTPS',
  file: 'Log file',
}
