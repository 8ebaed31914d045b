import { CLOUDS } from './clouds.ts'
import { DNS_SERVERS } from './dns-servers.ts'
import { FIREWALLS } from './firewalls.ts'
import { GATEWAYS } from './gateways.ts'
import type { Product } from './product.ts'
import { SENSORS } from './sensors.ts'

/** The products whose logs are tested, by kind. docs/reference/log-formats.md lists them. */
export const PRODUCTS: Readonly<Record<string, readonly Product[]>> = {
  'DNS servers': DNS_SERVERS,
  Firewalls: FIREWALLS,
  'Web gateways and proxies': GATEWAYS,
  'Cloud services': CLOUDS,
  'Network sensors': SENSORS,
}
