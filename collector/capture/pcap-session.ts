import { createRequire } from 'node:module'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { LIVE_FLUSH_MS } from '../limits.ts'
import { ANY_INTERFACE, interfaceNames, noSuchInterface } from './interfaces.ts'

/**
 * One libpcap capture of an interface, through only the native addon of the pcap package. The
 * package's own session object polls the socket with a libuv handle that it never closes. A thread
 * that ends with such a handle open aborts the process.
 *
 * Only one thread of a process can load the addon. That thread may open several captures.
 * Limitations of the addon:
 *   - It cannot close an idle capture: close() asks libpcap to break its loop, and libpcap does so
 *     at the next packet (pcap_read_linux_mmap_v3). The state `closing` may therefore last.
 *   - It never closes a capture whose interface has vanished. The ring stays allocated until the
 *     process ends, so the caller limits how often it reopens.
 *   - Its statistics are 32-bit counters. At a million packets a second they wrap in 71 minutes.
 */

/** The part of the addon that is used. Its own typings depend on an outdated @types/node. */
interface PcapAddon {
  PcapSession: new () => AddonSession
}
interface AddonSession {
  open_live(
    device: string,
    filter: string,
    ringBytes: number,
    snaplenBytes: number,
    dumpFile: string,
    onPacket: () => void,
    monitorMode: boolean,
    timeoutMs: number,
    onWarning: (text: string) => void,
    promiscuous: boolean,
  ): string
  /**
   * Calls onPacket for each packet until the ring is empty, with the packet in `bytes` and its
   * header in `header`. Returns -1 on an error, -2 when closed.
   */
  dispatch(bytes: Buffer, header: Buffer): number
  stats(): { ps_recv: number; ps_drop: number; ps_ifdrop: number }
  close(): void
}

export interface PcapSessionOptions {
  /** An interface, or `any`. */
  readonly device: string
  readonly filter: string
  /** The operator's part of the filter, for error messages. */
  readonly expression: string
  readonly snaplenBytes: number
  /** Size of the ring between the kernel and this thread, in bytes. */
  readonly ringBytes: number
  readonly promiscuous: boolean
}

/**
 * The part of struct pcap_pkthdr that the addon writes, in native byte order: two u32 of time and
 * two u32 of length.
 */
const HEADER_WORDS = 4
const CAPTURED = 2
const U32 = 2 ** 32

export class PcapSession {
  readonly linkType: number
  /** The current packet, valid while onPacket runs: as bytes and as whole words. */
  readonly bytes: Buffer
  readonly words: Uint32Array
  /**
   * Packets that passed the filter, by the kernel's count. `dropped` counts those among them for
   * which the ring was full.
   */
  received = 0
  dropped = 0
  readonly #addon: AddonSession
  readonly #headerBytes: Buffer
  readonly #header: Uint32Array
  #last = { received: 0, dropped: 0 }
  #state: 'open' | 'closing' | 'ended' = 'open'

  /**
   * @throws Fault that says what to do: CAPTURE_DENIED, or USAGE if the filter does not compile.
   */
  constructor(options: PcapSessionOptions, onPacket: () => void) {
    // Without permission, libpcap does not report a missing interface.
    if (!exists(options.device)) throw new InterfaceAbsent('CAPTURE_DENIED', noSuchInterface(options.device))
    const packet = new ArrayBuffer((options.snaplenBytes + 3) & ~3)
    this.bytes = Buffer.from(packet, 0, options.snaplenBytes)
    this.words = new Uint32Array(packet)
    const header = new ArrayBuffer(HEADER_WORDS * 4)
    this.#headerBytes = Buffer.from(header)
    this.#header = new Uint32Array(header)
    try {
      this.#addon = new (loadAddon().PcapSession)()
      const linkType = this.#addon.open_live(
        options.device,
        options.filter,
        options.ringBytes,
        options.snaplenBytes,
        '',
        onPacket,
        false,
        LIVE_FLUSH_MS,
        // The only warning says that the interface has no IPv4 address. That is common and
        // harmless.
        () => {},
        options.promiscuous,
      )
      this.linkType = linkTypeNumber(linkType)
    } catch (error) {
      throw openingFault(options.device, options.expression, error as Error)
    }
  }

  /** Captured length of the current packet, in bytes. */
  get captured(): number {
    return Math.min(this.#header[CAPTURED] ?? 0, this.bytes.length)
  }
  /** Time of the current packet: seconds since 1970, and microseconds. */
  get seconds(): number {
    return this.#header[0] ?? 0
  }
  get microseconds(): number {
    return this.#header[1] ?? 0
  }

  /**
   * Calls onPacket for each packet until the ring is empty. `lost` means that the interface has
   * vanished.
   */
  dispatch(): 'empty' | 'lost' | 'closed' {
    if (this.#state === 'ended') return 'closed'
    const outcome = this.#addon.dispatch(this.bytes, this.#headerBytes)
    if (outcome >= 0) return 'empty'
    // The figures of a closed capture were read in close(). Those of a vanished interface can still
    // be read.
    if (outcome === -1) this.readStats()
    this.#state = 'ended'
    return outcome === -1 ? 'lost' : 'closed'
  }

  /** Updates `received` and `dropped`. */
  readStats(): void {
    // Packets that arrive after close() are not counted for this capture.
    if (this.#state !== 'open') return
    const { ps_recv, ps_drop } = this.#addon.stats()
    this.received += (ps_recv - this.#last.received + U32) % U32
    this.dropped += (ps_drop - this.#last.dropped + U32) % U32
    this.#last = { received: ps_recv, dropped: ps_drop }
  }

  /** Starts closing. dispatch() returns `closed` when libpcap has finished. */
  close(): void {
    if (this.#state !== 'open') return
    this.readStats()
    this.#state = 'closing'
    this.#addon.close()
  }
}

function exists(device: string): boolean {
  const names = interfaceNames()
  return device === ANY_INTERFACE || names.length === 0 || names.includes(device)
}

function loadAddon(): PcapAddon {
  return createRequire(import.meta.url)('pcap/build/Release/pcap_binding.node') as PcapAddon
}

/**
 * The addon returns four link types by name, and the others as a number within a sentence. Names
 * and numbers are libpcap's DLT_ values.
 */
function linkTypeNumber(answer: string): number {
  const known: Record<string, number> = {
    LINKTYPE_NULL: 0,
    LINKTYPE_ETHERNET: 1,
    LINKTYPE_IEEE802_11_RADIO: 127,
    LINKTYPE_RAW: 101,
    LINKTYPE_LINUX_SLL: 113,
  }
  return known[answer] ?? Number(answer.replace(/\D/g, ''))
}

const WITHOUT_PERMISSION = [
  'run as root, or give it CAP_NET_RAW: AmbientCapabilities=CAP_NET_RAW (systemd)',
  '--cap-add NET_RAW (container)',
  `setcap cap_net_raw=ep ${process.execPath}`,
].join(', ')

/** The interface is missing or down. A later attempt may succeed. */
export class InterfaceAbsent extends Fault {}

/** Converts an error of the addon, or of loading it, to a Fault. */
export function openingFault(name: string, expression: string, error: Error): Error {
  // The addon could not be unpacked, and the Fault already says so.
  if (error instanceof Fault) return error
  const text = error.message
  const denied = (why: string) => new Fault('CAPTURE_DENIED', `${name}: ${why}`, { cause: error })
  const absent = (why: string) => new InterfaceAbsent('CAPTURE_DENIED', why, { cause: error })
  if (/no such device|doesn't exist/i.test(text)) return absent(noSuchInterface(name))
  if (/permi|CAP_NET_RAW/i.test(text)) return denied(`no permission to capture; ${WITHOUT_PERMISSION}`)
  if (/not up/i.test(text)) return absent(`${name}: the interface is down; "ip link set ${name} up" brings it up`)
  if (/self-register/.test(text)) return denied('another capture of an interface runs in this process; one is possible')
  if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') {
    return denied('the pcap package is not built; install libpcap-dev and run "npm rebuild pcap"')
  }
  if (
    expression !== '' &&
    /rejects all packets|filter expression|syntax|vlan|proto|host|port|net|illegal|unknown/i.test(text)
  ) {
    return new Fault('USAGE', `--capture-filter: ${JSON.stringify(expression)}: ${text}`, { cause: error })
  }
  return denied(text || 'cannot be opened')
}
