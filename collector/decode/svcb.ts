import { nameEnd } from './dns.ts'

/**
 * SVCB and HTTPS records (RFC 9460 §2.2): priority, target, then parameters of key, length and
 * value. Read are the port, the addresses and whether there is a configuration for Encrypted Client
 * Hello. The protocols (alpn) say nothing that a connection does not show.
 */
const PARAMETER_HEADER_BYTES = 4
/** RFC 9460 §14.3.2, RFC 9848. */
const Parameter = { port: 3, ipv4Hint: 4, ech: 5, ipv6Hint: 6 } as const

/** The parameters of a record. One per worker, overwritten by each record. */
export class Service {
  hasEch = false
  /** 0 if the record gives none. */
  port = 0
  /** Addresses in bytes [ipv4Hints, ipv4HintsEnd), and the same for IPv6. */
  ipv4Hints = 0
  ipv4HintsEnd = 0
  ipv6Hints = 0
  ipv6HintsEnd = 0
}

/** Reads the record whose data is in bytes [start, end). Returns false if it is malformed. */
export function readService(view: DataView, start: number, end: number, service: Service): boolean {
  service.hasEch = false
  service.port = 0
  service.ipv4Hints = 0
  service.ipv4HintsEnd = 0
  service.ipv6Hints = 0
  service.ipv6HintsEnd = 0
  if (start + 2 > end) return false
  let at = nameEnd(view, start + 2, end)
  if (at < 0) return false
  while (at < end) {
    if (at + PARAMETER_HEADER_BYTES > end) return false
    const value = at + PARAMETER_HEADER_BYTES
    const valueEnd = value + view.getUint16(at + 2)
    if (valueEnd > end) return false
    switch (view.getUint16(at)) {
      case Parameter.port:
        if (value + 2 === valueEnd) service.port = view.getUint16(value)
        break
      case Parameter.ech:
        service.hasEch = true
        break
      case Parameter.ipv4Hint:
        service.ipv4Hints = value
        service.ipv4HintsEnd = valueEnd
        break
      case Parameter.ipv6Hint:
        service.ipv6Hints = value
        service.ipv6HintsEnd = valueEnd
        break
      default:
    }
    at = valueEnd
  }
  return true
}
