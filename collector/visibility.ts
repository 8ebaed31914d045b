import type { TrieRule } from '../registry/compile-trie.ts'

/**
 * DNS-over-HTTPS resolvers (RFC 8484), by the name in their ClientHello. Their queries cannot be
 * seen, so the sessions are counted. From the public lists of the operators and of the curl
 * project's wiki, "DNS over HTTPS".
 */
const RESOLVER_DOMAINS: readonly string[] = [
  'dns.google',
  'dns64.dns.google',
  'cloudflare-dns.com',
  'one.one.one.one',
  '1dot1dot1dot1.cloudflare-dns.com',
  'cloudflare-gateway.com',
  'dns.quad9.net',
  'dns9.quad9.net',
  'dns10.quad9.net',
  'dns11.quad9.net',
  'doh.opendns.com',
  'doh.familyshield.opendns.com',
  'doh.umbrella.com',
  'dns.nextdns.io',
  'doh3.dns.nextdns.io',
  'firefox.dns.nextdns.io',
  'dns.adguard.com',
  'dns.adguard-dns.com',
  'unfiltered.adguard-dns.com',
  'family.adguard-dns.com',
  'doh.cleanbrowsing.org',
  'doh.dns.apple.com',
  'mask.icloud.com',
  'doh.xfinity.com',
  'dns.alidns.com',
  'doh.pub',
  'doh.360.cn',
  'dns.sb',
  'doh.sb',
  'doh.dns.sb',
  'dns.mullvad.net',
  'doh.mullvad.net',
  'freedns.controld.com',
  'dns.controld.com',
  'doh.libredns.gr',
  'dns.digitale-gesellschaft.ch',
  'doh.applied-privacy.net',
  'doh.ffmuc.net',
  'dns0.eu',
  'doh.tiar.app',
  'dns.switch.ch',
  'public.dns.iij.jp',
  'doh.li',
  'odoh.cloudflare-dns.com',
]

export const RESOLVERS: readonly TrieRule[] = RESOLVER_DOMAINS.map((domain) => ({ domain, match: 'suffix' }))
