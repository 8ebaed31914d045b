import type { PacketClassName } from '../../collector/batch/packet-class.ts'
import { type CapturedFrame, type PcapFields, pcapFile } from '../support/packets-pcap.ts'

/** An expected name, as a row of expect.json. */
export interface ExpectedName {
  /**
   * Index of the frame that completes the name. For a name that is reported at the end of the file:
   * the number of frames.
   */
  readonly frame: number
  readonly method: 'dns' | 'tls' | 'quic'
  readonly client: string
  readonly clientPort: number
  readonly server: string
  readonly serverPort: number
  readonly name: string
  /** The hello has encrypted_client_hello. */
  readonly ech?: true
  /** The name is of a proxy's handshake. */
  readonly via?: 'connect' | 'socks' | 'proxyHeader'
  /** Milliseconds since 1970, in cases that test times. */
  readonly timeMs?: number
}

/**
 * The content of expect.json: every name in order, the nonzero packet classes, and the damage of
 * the file, if any.
 */
export interface Expectation {
  readonly names: readonly ExpectedName[]
  /** Absent in cases that do not test classes. */
  readonly classes?: Partial<Record<PacketClassName, number>>
  /** The text of the fault after the file's path. */
  readonly damage?: string
  /** tshark finds other names in this capture. The case's README.md says why. */
  readonly tshark?: false
}

/** A packet with its expected names and class, which are known before the decoder runs. */
export interface GeneratedPacket extends CapturedFrame {
  readonly packetClass?: PacketClassName
  readonly names?: readonly Omit<ExpectedName, 'frame'>[]
}

export interface GeneratedCapture {
  readonly packets: readonly GeneratedPacket[]
  readonly pcap?: PcapFields
  /** Writes the file, for formats other than pcap. */
  readonly write?: (packets: readonly GeneratedPacket[]) => Buffer
  /** Default: input.pcap. build.ts compresses .gz and .zst files. */
  readonly file?:
    | 'input.pcap'
    | 'input.pcapng'
    | 'input.pcap.gz'
    | 'input.pcap.zst'
    | 'input.pcapng.gz'
    | 'input.pcapng.zst'
  /**
   * Names of incomplete messages, in the order in which they are reported at the end of the file.
   */
  readonly namesAtEnd?: readonly Omit<ExpectedName, 'frame'>[]
  /** Why the case exists and how it was made, in Markdown. */
  readonly about: string
  /**
   * Why tshark finds other names. If absent, tshark's names are stored in tshark.json and compared.
   */
  readonly tsharkDiffers?: string
  /**
   * Truncates the file to `bytes`. The collector must report `damage`, and reads only the first
   * `wholePackets` packets.
   */
  readonly cut?: { readonly bytes: number; readonly damage: string; readonly wholePackets: number }
}

export function captureFile(capture: GeneratedCapture): string {
  return capture.file ?? 'input.pcap'
}

/** The uncompressed file. */
export function captureBytes(capture: GeneratedCapture): Buffer {
  const bytes = capture.write?.(capture.packets) ?? pcapFile(capture.packets, capture.pcap)
  return capture.cut === undefined ? bytes : bytes.subarray(0, capture.cut.bytes)
}

export function expectationOf(capture: GeneratedCapture): Expectation {
  const packets = capture.packets.slice(0, capture.cut?.wholePackets)
  const names = packets.flatMap((packet, frame) => (packet.names ?? []).map((name) => ({ frame, ...name })))
  const atEnd = (capture.namesAtEnd ?? []).map((name) => ({ frame: packets.length, ...name }))
  const classes = classesOf(packets)
  return {
    names: [...names, ...atEnd],
    ...(classes === undefined ? {} : { classes }),
    ...(capture.cut === undefined ? {} : { damage: capture.cut.damage }),
    ...(capture.tsharkDiffers === undefined ? {} : { tshark: false }),
  }
}

/** Undefined unless every packet has a class. */
function classesOf(packets: readonly GeneratedPacket[]): Expectation['classes'] {
  const classes: Partial<Record<PacketClassName, number>> = {}
  for (const { packetClass } of packets) {
    if (packetClass === undefined) return undefined
    classes[packetClass] = (classes[packetClass] ?? 0) + 1
  }
  return classes
}
