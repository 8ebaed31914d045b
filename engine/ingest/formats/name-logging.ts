/**
 * By format: what to enable so that a product logs names, from the vendors' documentation (FortiOS
 * profiles, PAN-OS URL filtering, Meraki syslog roles, Zeek logs).
 * https://wiki.squid-cache.org/Features/SslPeekAndSplice
 */
const BY_FORMAT: Readonly<Record<string, string>> = {
  'firewall-csv': 'on PAN-OS, alert on all categories in a URL Filtering profile, and forward the log type url',
  'firewall-kv':
    'on FortiGate, enable log-all-url in the web filter profile and log-all-domain in the DNS filter profile; on Meraki, select the syslog role URLs',
  'open-firewall-csv':
    'filterlog has addresses only; on pfSense and OPNsense, send the log of Unbound with log-queries enabled',
  'proxy-native': 'for connections that Squid intercepts, let ssl_bump peek at step 1',
  zeek: 'send dns.log, ssl.log, quic.log and http.log',
}
const OTHERS = 'let the device log host names (DNS, URL or TLS server name)'

/** What to do if no line of a source in this format, which may be '', names a host. */
export function nameLoggingHint(format: string): string {
  return BY_FORMAT[format] ?? OTHERS
}
