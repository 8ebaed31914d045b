import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/*
 * Sends the frames of a pcap file on an interface: node replay.js INTERFACE FILE. The file has
 * little-endian records, as the captures in test/captures do.
 */
interface PcapSession {
  open_live(
    device: string,
    filter: string,
    bufferBytes: number,
    snaplen: number,
    outFile: string,
    onPacket: () => void,
    isMonitor: boolean,
    timeoutMs: number,
    onWarning: () => void,
    isPromiscuous: boolean,
  ): void
  inject(frame: Buffer): void
}

const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const CAPTURED_LENGTH_AT = 8

const addon = createRequire(import.meta.url)('pcap/build/Release/pcap_binding.node') as {
  readonly PcapSession: new () => PcapSession
}
const [, , device = '', file = ''] = process.argv
const session = new addon.PcapSession()
session.open_live(
  device,
  '',
  1 << 20,
  65_535,
  '',
  () => {},
  false,
  100,
  () => {},
  false,
)
const bytes = readFileSync(file)
for (let at = FILE_HEADER_BYTES; at < bytes.length; ) {
  const end = at + RECORD_HEADER_BYTES + bytes.readUInt32LE(at + CAPTURED_LENGTH_AT)
  session.inject(Buffer.from(bytes.subarray(at + RECORD_HEADER_BYTES, end)))
  at = end
}
