import { anyKv } from './any-kv.ts'
import { firewallCsv } from './firewall-csv.ts'
import { firewallKv } from './firewall-kv.ts'
import type { LogFormat } from './log-line.ts'
import { openFirewallCsv } from './open-firewall-csv.ts'
import { proxyNative } from './proxy-native.ts'

/** All formats, in the order in which they are asked: what has the strongest cue first, what has none last. */
export const FORMATS: readonly LogFormat[] = [firewallCsv, openFirewallCsv, proxyNative, firewallKv, anyKv]
