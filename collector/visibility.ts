import type { TrieRule } from '../registry/compile-trie.ts'

/**
 * DNS-over-HTTPS resolvers (RFC 8484), by the name in their ClientHello, with the names below it.
 * Their queries cannot be seen, so the sessions are counted. Sorted by domain. Sources: the pages
 * of the operators; the curl project's wiki, "DNS over HTTPS"; AdGuard's "Known DNS Providers"; the
 * list `public-resolvers` of the DNSCrypt project. Names that no longer answer remain, because
 * clients with an old list still try them.
 */
const RESOLVER_DOMAINS: readonly string[] = [
  ...['doh.disconnect.app', 'doh.tiar.app', 'jp.tiar.app', 'dns.kescher.at', 'dns.belnet.be'],
  ...['family.canadianshield.cira.ca', 'private.canadianshield.cira.ca', 'protected.canadianshield.cira.ca'],
  ...['dns1.dnscrypt.ca', 'dns2.dnscrypt.ca', 'secure.onedns.cc', 'dns.chenu.ch', 'doh.datacore.ch'],
  ...['dns.digitale-gesellschaft.ch', 'eu1.dns.lavate.ch', 'dns.switch.ch', 'doh.360.cn', 'dns.rubyfish.cn'],
  ...['dns.adguard.com', 'dns-family.adguard.com', 'dns-unfiltered.adguard.com', 'd.adguard-dns.com'],
  ...['dns.adguard-dns.com', 'family.adguard-dns.com', 'unfiltered.adguard-dns.com', 'blitz.ahadns.com'],
  ...['dns.akbxr.com', 'dns.alidns.com', 'doh.dns.apple.com', 'secure.avastdns.com', 'dns.bebasid.com'],
  ...['doh-ch.blahdns.com', 'doh-de.blahdns.com', 'doh-fi.blahdns.com', 'doh-jp.blahdns.com', 'doh-sg.blahdns.com'],
  ...['doh.bt.com', 'dns.cloudflare.com', 'cloudflare-dns.com', 'cloudflare-gateway.com', 'dns.containerpi.com'],
  ...['dns.controld.com', 'freedns.controld.com', 'dns.decloudus.com', 'dns-doh.dnsforfamily.com'],
  ...['dns.dnswarden.com', 'doh.dnswarden.com', 'dns.google.com', 'doth.huque.com', 'mask.icloud.com'],
  ...['mask-api.icloud.com', 'mask-canary.icloud.com', 'mask-h2.icloud.com', 'dns.ipv6dns.com', 'dns.opendns.com'],
  ...['doh.opendns.com', 'doh.familyshield.opendns.com', 'doh.sandbox.opendns.com', 'basic.rethinkdns.com'],
  ...['max.rethinkdns.com', 'sky.rethinkdns.com', 'doh-01.spectrum.com', 'doh-02.spectrum.com'],
  ...['dns.surfshark.com', 'doh.umbrella.com', 'doh.xfinity.com', 'odvr.nic.cz', 'dnsforge.de', 'dns.dnshome.de'],
  ...['dns.hahnjo.de', 'dns1.in-berlin.de', 'dns.kernel-error.de', 'muli.stusta.mhn.de', 'doh.niyawe.de'],
  ...['doh.tvk.rwth-aachen.de', 'dns.siry.de', 'dns.t53.de', 'dns.telekom.de', 'dns.tls-data.de'],
  ...['doh.ibr.cs.tu-bs.de', 'cluster-0.gac.edu', 'cluster-1.gac.edu', 'dns.cert.ee', 'dns.paesa.es', 'dns0.eu'],
  ...['doh.dns4all.eu', 'child.joindns4.eu', 'child-noads.joindns4.eu', 'noads.joindns4.eu'],
  ...['protective.joindns4.eu', 'unfiltered.joindns4.eu', 'doh.securedns.eu', 'doh.42l.fr', 'dns.benpro.fr'],
  ...['doh.bortzmeyer.fr', 'dns.dgea.fr', 'ns0.fdn.fr', 'ns1.fdn.fr', 'qlf-doh.inria.fr', 'doh.lacontrevoie.fr'],
  ...['8888.google', 'dns.google', 'doh.libredns.gr', 'doh.angry.im', 'doh.captnemo.in', 'dns.bitservices.io'],
  ...['dns.nextdns.io', 'doh.safesurfer.io', 'doh-2.seby.io', 'resolver.unstoppable.io', 'dns.shecan.ir'],
  ...['free.shecan.ir', 'doh.ccb-net.it', 'public.dns.iij.jp', 'dns.njal.la', 'doh.li', 'dns.circl.lu'],
  ...['kaitain.restena.lu', 'doh.nic.lv', 'dnslow.me', 'dns.sev.monster', 'dns.therifleman.name'],
  ...['doh003.280blocker.net', 'resolver1.absolight.net', 'resolver2.absolight.net', 'adl.adfilter.net'],
  ...['per.adfilter.net', 'syd.adfilter.net', 'doh.la.ahadns.net', 'doh.nl.ahadns.net', 'dnses.alekberg.net'],
  ...['dnsnl.alekberg.net', 'dnsnl-noads.alekberg.net', 'dnsse.alekberg.net', 'dnsse-noads.alekberg.net'],
  ...['doh.applied-privacy.net', 'doh.appliedprivacy.net', 'dns.bitdefender.net', 'dns.caspervk.net'],
  ...['dns.cfiec.net', 'dns.cmrg.net', 'doh.cox.net', 'dns.digitalsize.net', 'au01.dns4me.net', 'ca01.dns4me.net'],
  ...['nz01.dns4me.net', 'sg01.dns4me.net', 'uk01.dns4me.net', 'pdns.faelix.net', 'rdns.faelix.net'],
  ...['doh.ffmuc.net', 'ordns.he.net', 'dns.hinet.net', 'dns.hostux.net', 'dns.jupitrdns.net', 'dns.mullvad.net'],
  ...['doh.mullvad.net', 'doh.onedns.net', 'dns.quad9.net', 'dns10.quad9.net', 'dns11.quad9.net'],
  ...['dns12.quad9.net', 'dns9.quad9.net', 'adfree.usableprivacy.net', 'dns.yandex.net', 'dns.anon.no'],
  ...['dns.comss.one', 'one.one.one.one', 'nsec.arnor.org', 'dns.artikel10.org', 'dns.blokada.org'],
  ...['adult-filter-dns.cleanbrowsing.org', 'doh.cleanbrowsing.org', 'family-filter-dns.cleanbrowsing.org'],
  ...['security-filter-dns.cleanbrowsing.org', 'dns.neutopia.org', 'doh.powerdns.org', 'puredns.org'],
  ...['doh.syshero.org', 'de.teradns.org', 'doh.tiarap.org', 'jp.tiarap.org', 'wikimedia-dns.org', 'doh.kel.pe'],
  ...['dns.pub', 'doh.pub', 'dot.pub', 'dns.sb', 'doh.sb', 'dns.rin.sh', 'doh.crypto.sx', 'dns.ebner.tech'],
  ...['adfreedns.top', 'dns.lsho.top', 'dns.twnic.tw', 'dns.aa.net.uk', 'dns.brahma.world', 'dns.busold.ws'],
  ...['dns.froth.zone', 'dns.wugui.zone', 'dns-asia.wugui.zone'],
]

export const RESOLVERS: readonly TrieRule[] = RESOLVER_DOMAINS.map((domain) => ({ domain, match: 'suffix' }))
