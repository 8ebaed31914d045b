import { PacketClass } from '../batch/packet-class.ts'
import { networkLayer, SNAP, SNAP_BYTES, type VirtualNetworks } from './network-layer.ts'

/**
 * IEEE 802.11 data frames, with and without radiotap -> offset of the IP header. Not read:
 * encrypted frames, aggregated MSDUs after the first.
 */

/** IEEE 802.11-2020 §9.2. */
const WLAN_HEADER_BYTES = 24
const WLAN_TYPE_DATA = 2
/** Version 0 and type data, in the low nibble of the first byte. */
const DATA_FRAME = 0x08
const WLAN_TO_AND_FROM_DS = 0x03
const WLAN_PROTECTED = 0x40
const WLAN_ORDER = 0x80
const WLAN_SUBTYPE_NO_DATA = 0x4
const WLAN_SUBTYPE_QOS = 0x8
const WLAN_QOS_AMSDU = 0x80
/** §9.3.2.2.2: destination, source, length. */
const AMSDU_SUBFRAME_HEADER_BYTES = 14

/**
 * https://www.radiotap.org: version, pad, length of the header in little-endian, words that flag
 * the fields present, fields.
 */
export function radiotapPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 8 > end) return ~PacketClass.truncated
  const headerBytes = view.getUint16(offset + 2, true)
  if (headerBytes < 8) return ~PacketClass.linkUnsupported
  const frame = offset + headerBytes
  if (frame > end) return ~PacketClass.truncated
  const fields = view.getUint32(offset + 4, true)
  let at = offset + 8
  for (let word = fields; word >>> 31 === 1 && at + 4 <= frame; at += 4) word = view.getUint32(at, true)
  let padded = false
  if ((fields & 0x2) !== 0) {
    // The first field, a time of 8 bytes, is aligned to 8 bytes from the header's start.
    if ((fields & 0x1) !== 0) at = offset + (((at - offset + 7) & ~7) + 8)
    if (at < frame) padded = (view.getUint8(at) & 0x20) !== 0
  }
  return wlanPayload(view, frame, end, padded, networks)
}

/**
 * IEEE 802.11-2020 §9.3.2.1: the header of a data frame, then LLC and SNAP. With `padded`, the
 * header is padded to 4 bytes.
 */
export function wlanPayload(
  view: DataView,
  offset: number,
  end: number,
  padded: boolean,
  networks: VirtualNetworks,
): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  return dataPayload(view, offset, end, padded, view.getUint8(offset), view.getUint8(offset + 1), networks)
}

/**
 * The same in CAPWAP. Some access points swap the first two bytes. The type of a data frame shows
 * the order: the flags of frames to or from an access point have another low nibble.
 */
export function capwapWlanPayload(view: DataView, offset: number, end: number, networks: VirtualNetworks): number {
  if (offset + 2 > end) return ~PacketClass.truncated
  const first = view.getUint8(offset)
  const second = view.getUint8(offset + 1)
  const isSwapped = (first & 0x0f) !== DATA_FRAME && (second & 0x0f) === DATA_FRAME
  return isSwapped
    ? dataPayload(view, offset, end, false, second, first, networks)
    : dataPayload(view, offset, end, false, first, second, networks)
}

function dataPayload(
  view: DataView,
  offset: number,
  end: number,
  padded: boolean,
  control: number,
  flags: number,
  networks: VirtualNetworks,
): number {
  const subtype = control >> 4
  if (((control >> 2) & 3) !== WLAN_TYPE_DATA || (subtype & WLAN_SUBTYPE_NO_DATA) !== 0) return ~PacketClass.notIp
  if ((flags & WLAN_PROTECTED) !== 0) return ~PacketClass.linkEncrypted
  let header = WLAN_HEADER_BYTES
  if ((flags & WLAN_TO_AND_FROM_DS) === WLAN_TO_AND_FROM_DS) header += 6
  let aggregated = false
  if ((subtype & WLAN_SUBTYPE_QOS) !== 0) {
    if (offset + header + 2 > end) return ~PacketClass.truncated
    aggregated = (view.getUint8(offset + header) & WLAN_QOS_AMSDU) !== 0
    header += 2
    if ((flags & WLAN_ORDER) !== 0) header += 4
  }
  if (padded) header = (header + 3) & ~3
  if (aggregated) header += AMSDU_SUBFRAME_HEADER_BYTES
  const llc = offset + header
  if (llc + SNAP_BYTES > end) return ~PacketClass.truncated
  if (view.getUint16(llc) !== SNAP) return ~PacketClass.notIp
  return networkLayer(view, view.getUint16(llc + SNAP_BYTES - 2), llc + SNAP_BYTES, end, networks)
}
