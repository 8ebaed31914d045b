import { bindQuery } from './bind-query.ts'
import { coreDns } from './coredns.ts'
import { dnsmasq } from './dnsmasq.ts'
import type { LogFormat } from './log-line.ts'
import { proxyCommon } from './proxy-common.ts'
import { proxyNative } from './proxy-native.ts'
import { squidGuard } from './squid-guard.ts'
import { unbound } from './unbound.ts'
import { w3cExtended } from './w3c-extended.ts'
import { windowsDns } from './windows-dns.ts'

/** All formats, in the order in which they are asked: what has the strongest cue first, what has none last. */
export const FORMATS: readonly LogFormat[] = [
  windowsDns,
  bindQuery,
  unbound,
  dnsmasq,
  coreDns,
  proxyNative,
  proxyCommon,
  squidGuard,
  w3cExtended,
]
