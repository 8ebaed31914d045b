import { anyCsv } from './any-csv.ts'
import { cef } from './cef.ts'
import { collectorJson } from './collector-json.ts'
import { jsonLogs } from './json-logs.ts'
import { leef } from './leef.ts'
import type { LogFormat } from './log-line.ts'
import { netskope } from './netskope.ts'
import { proxyNative } from './proxy-native.ts'
import { umbrella } from './umbrella.ts'
import { zscaler } from './zscaler.ts'

/** All formats, in the order in which they are asked: what has the strongest cue first, what has none last. */
export const FORMATS: readonly LogFormat[] = [
  collectorJson,
  jsonLogs,
  cef,
  leef,
  proxyNative,
  zscaler,
  umbrella,
  netskope,
  anyCsv,
]
