import { COLON, EQUALS, HYPHEN, hexDigit, isText, NOT_FOUND, QUOTE, textAtIgnoreCase } from './bytes.ts'
import { readBlueCoat, takeBlueCoatUser } from './firewall-bluecoat.ts'
import { isCheckPoint, readCheckPoint, readCheckPointPairs, takeCheckPointUser } from './firewall-checkpoint.ts'
import { readFortiGate, takeFortiGateUser } from './firewall-fortigate.ts'
import { isMeraki, readMeraki } from './firewall-meraki.ts'
import { readSonicWall, takeSonicWallUser } from './firewall-sonicwall.ts'
import { readSophos, readSophosUtm, takeSophosUser } from './firewall-sophos.ts'
import { readWatchGuard, takeWatchGuardUser } from './firewall-watchguard.ts'
import { KeyTable } from './key-table.ts'
import { PairScanner } from './key-value.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'

/*
 * Firewalls and gateways that write `key=value` pairs. One pass over the first keys of a message
 * identifies the vendor, because many vendors share some keys (`date=`, `src=`) and others belong
 * to one vendor (`logid=`, `log_component=`, `msg_id=`).
 */
export const firewallKv: LogFormat = { id: 'firewall-kv', detect, parse, takeUserAndBytes }

const Vendor = {
  none: 0,
  fortiGate: 1,
  sonicWall: 2,
  sophos: 3,
  sophosUtm: 4,
  watchGuard: 5,
  checkPoint: 6,
  checkPointPairs: 7,
  meraki: 8,
  blueCoat: 9,
} as const
type Vendor = (typeof Vendor)[keyof typeof Vendor]

/**
 * Keys by their evidence: of the vendor alone, with another key, or with a value (see vendorOf).
 */
const Cue = {
  time: 0,
  type: 1,
  serial: 2,
  firewall: 3,
  fortiGate: 4,
  sophos: 5,
  checkPoint: 6,
  blueCoatClient: 7,
  blueCoat: 8,
  id: 9,
  sophosDevice: 10,
  sophosUtm: 11,
  watchGuard: 12,
} as const
const CUES = new KeyTable({
  date: Cue.time,
  time: Cue.time,
  eventtime: Cue.time,
  timestamp: Cue.time,
  itime: Cue.time,
  type: Cue.type,
  sn: Cue.serial,
  fw: Cue.firewall,
  logid: Cue.fortiGate,
  devid: Cue.fortiGate,
  log_component: Cue.sophos,
  log_type: Cue.sophos,
  device_serial_id: Cue.sophos,
  loguid: Cue.checkPoint,
  'c-ip': Cue.blueCoatClient,
  'cs-host': Cue.blueCoat,
  'cs-method': Cue.blueCoat,
  'cs-uri': Cue.blueCoat,
  'cs-uri-scheme': Cue.blueCoat,
  'sc-filter-result': Cue.blueCoat,
  'sc-status': Cue.blueCoat,
  id: Cue.id,
  device: Cue.sophosDevice,
  sys: Cue.sophosUtm,
  msg_id: Cue.watchGuard,
})

const cues = new PairScanner()

/** The vendor of the message that detect read last. Parse is called for the same message. */
let vendor: Vendor = Vendor.none

function detect({ view, marks }: LogLine, start: number, end: number): boolean {
  const limit = Math.min(end, start + CUE_BYTES)
  const hasPairs = (marks & (Mark.equals | Mark.quote)) !== 0
  if (hasPairs) vendor = vendorOf(view, start, limit)
  else vendor = isMeraki(view, start, limit, limit) ? Vendor.meraki : Vendor.none
  return vendor !== Vendor.none
}

function parse(line: LogLine, start: number, end: number): Verdict {
  switch (vendor) {
    case Vendor.fortiGate:
      return readFortiGate(line, start, end, cues.separator)
    case Vendor.sonicWall:
      return readSonicWall(line, start, end, cues.separator)
    case Vendor.sophos:
      return readSophos(line, start, end, cues.separator)
    case Vendor.sophosUtm:
      return readSophosUtm(line, start, end, cues.separator)
    case Vendor.watchGuard:
      return readWatchGuard(line, start, end, cues.separator)
    case Vendor.checkPoint:
      return readCheckPoint(line, start, end)
    case Vendor.checkPointPairs:
      return readCheckPointPairs(line, start, end, cues.separator)
    case Vendor.meraki:
      return readMeraki(line, start, end)
    case Vendor.blueCoat:
      return readBlueCoat(line, start, end, cues.separator)
    default:
      return Verdict.unknown
  }
}

/** Of the message that parse read last. Meraki names no user. */
function takeUserAndBytes(line: LogLine): void {
  switch (vendor) {
    case Vendor.fortiGate:
      return takeFortiGateUser(line)
    case Vendor.sonicWall:
      return takeSonicWallUser(line)
    case Vendor.sophos:
    case Vendor.sophosUtm:
      return takeSophosUser(line)
    case Vendor.watchGuard:
      return takeWatchGuardUser(line)
    case Vendor.checkPoint:
    case Vendor.checkPointPairs:
      return takeCheckPointUser(line, vendor === Vendor.checkPoint)
    case Vendor.blueCoat:
      return takeBlueCoatUser(line)
    default:
  }
}

function vendorOf(view: DataView, start: number, limit: number): Vendor {
  const first = firstAssign(view, start, limit)
  if (first === NOT_FOUND) return isMeraki(view, start, limit, limit) ? Vendor.meraki : Vendor.none
  if (view.getUint8(first) === COLON) return isCheckPoint(view, start, first, limit) ? Vendor.checkPoint : Vendor.none
  if (isMeraki(view, start, first, limit)) return Vendor.meraki
  let seen = 0
  cues.reset(view, start, limit)
  while (cues.next()) {
    const cue = CUES.find(view, cues.keyStart, cues.keyEnd)
    if (cue < 0) continue
    seen |= 1 << cue
    const { valueStart, valueEnd } = cues
    switch (cue) {
      case Cue.fortiGate:
        return Vendor.fortiGate
      case Cue.sophos:
        return Vendor.sophos
      case Cue.checkPoint:
        return Vendor.checkPointPairs
      case Cue.id:
        if (isText(view, valueStart, valueEnd, 'firewall')) return Vendor.sonicWall
        break
      case Cue.sophosDevice:
        if (isText(view, valueStart, valueEnd, 'SFW')) return Vendor.sophos
        break
      case Cue.sophosUtm:
        if ((seen & (1 << Cue.id)) !== 0 && textAtIgnoreCase(view, valueStart, valueEnd, 'secure')) {
          return Vendor.sophosUtm
        }
        break
      case Cue.watchGuard:
        if (isMessageId(view, valueStart, valueEnd)) return Vendor.watchGuard
        break
      default:
        break
    }
    if (hasBoth(seen, Cue.serial, Cue.firewall)) return Vendor.sonicWall
    if (hasBoth(seen, Cue.blueCoatClient, Cue.blueCoat)) return Vendor.blueCoat
  }
  // FortiMail and old FortiGates have no more specific keys.
  return hasBoth(seen, Cue.time, Cue.type) ? Vendor.fortiGate : Vendor.none
}

/** The offset of the first `=` or `:"`, or NOT_FOUND. */
function firstAssign(view: DataView, start: number, limit: number): number {
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === EQUALS) return at
    if (byte === COLON && at + 1 < limit && view.getUint8(at + 1) === QUOTE) return at
  }
  return NOT_FOUND
}

function hasBoth(seen: number, first: number, second: number): boolean {
  return (seen & (1 << first)) !== 0 && (seen & (1 << second)) !== 0
}

/** `1AFF-0024`: four hex digits for the kind, and four for the message. */
function isMessageId(view: DataView, start: number, end: number): boolean {
  if (end - start !== 9 || view.getUint8(start + 4) !== HYPHEN) return false
  for (let at = start; at < end; at++) {
    if (at !== start + 4 && hexDigit(view.getUint8(at)) < 0) return false
  }
  return true
}
