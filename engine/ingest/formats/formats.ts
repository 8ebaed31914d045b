import { anyCsv } from './any-csv.ts'
import { anyKv } from './any-kv.ts'
import { bindQuery } from './bind-query.ts'
import { cef } from './cef.ts'
import { cisco } from './cisco.ts'
import { collectorJson } from './collector-json.ts'
import { coreDns } from './coredns.ts'
import { dnsmasq } from './dnsmasq.ts'
import { firewallCsv } from './firewall-csv.ts'
import { firewallKv } from './firewall-kv.ts'
import { jsonLogs } from './json-logs.ts'
import { leef } from './leef.ts'
import type { LogFormat } from './log-line.ts'
import { netskope } from './netskope.ts'
import { openFirewallCsv } from './open-firewall-csv.ts'
import { ownFormat } from './own-format.ts'
import { proxyCommon } from './proxy-common.ts'
import { proxyNative } from './proxy-native.ts'
import { sentences } from './sentences.ts'
import { squidGuard } from './squid-guard.ts'
import { umbrella } from './umbrella.ts'
import { unbound } from './unbound.ts'
import { w3cExtended } from './w3c-extended.ts'
import { windowsDns } from './windows-dns.ts'
import { zeek } from './zeek.ts'
import { zscaler } from './zscaler.ts'

/** All formats in the order of detection: the strongest cue first, formats without a cue last. */
export const FORMATS: readonly LogFormat[] = [
  collectorJson,
  jsonLogs,
  // Its directive names the columns, so no other format reads its rows.
  zeek,
  cef,
  leef,
  firewallCsv,
  windowsDns,
  bindQuery,
  unbound,
  dnsmasq,
  coreDns,
  sentences,
  cisco,
  openFirewallCsv,
  proxyNative,
  proxyCommon,
  squidGuard,
  firewallKv,
  zscaler,
  umbrella,
  netskope,
  // Without a `#` directive, the only cue is the number of columns.
  w3cExtended,
  anyKv,
  anyCsv,
  ownFormat,
]
