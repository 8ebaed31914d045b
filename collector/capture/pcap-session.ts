import { createRequire } from 'node:module'
import { Fault } from '../../engine/process/error-codes.ts'
import { LIVE_FLUSH_MS } from '../limits.ts'
import { ANY_INTERFACE, interfaceNames, noSuchInterface } from './interfaces.ts'

/**
 * One capture of an interface by libpcap, through the addon of the pcap package alone: the package's own session object watches the socket
 * by a libuv handle that it never closes, and a thread that ends with such a handle aborts the process.
 *
 * The addon can be loaded in one thread of a process, which may open several captures. What it lacks, and what is made of it here:
 *   - A capture that is idle cannot be closed: close() asks libpcap to break its loop, which it does when the next packet comes
 *     (pcap_read_linux_mmap_v3). So `closing` may last.
 *   - One whose interface has vanished is never closed; its ring stays until the process ends. Who re-opens counts.
 *   - Its statistics are 32-bit and wrap, at a million packets a second in 71 minutes.
 */

/** The part of the addon that is used. Its own typings bring an @types/node of long ago with them. */
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
  /** Calls onPacket for each packet until the ring is empty, the packet in `bytes` and its header in `header`. -1 at a fault, -2 when closed. */
  dispatch(bytes: Buffer, header: Buffer): number
  stats(): { ps_recv: number; ps_drop: number; ps_ifdrop: number }
  close(): void
}

export interface PcapSessionOptions {
  /** An interface, or `any`. */
  readonly device: string
  readonly filter: string
  /** The part of the filter that the operator wrote, for the error line. */
  readonly expression: string
  readonly snaplenBytes: number
  /** Ring between kernel and this thread, in bytes. */
  readonly ringBytes: number
  readonly promiscuous: boolean
}

/** What the addon writes of struct pcap_pkthdr, in the byte order of the machine: two u32 of time and two of length. */
const HEADER_WORDS = 4
const CAPTURED = 2
const U32 = 2 ** 32

export class PcapSession {
  readonly linkType: number
  /** The packet, while onPacket runs; its first bytes and whole words of it. */
  readonly bytes: Buffer
  readonly words: Uint32Array
  /** Packets that passed the filter, by the kernel's count; among them those that it dropped because the ring was full. */
  received = 0
  dropped = 0
  readonly #addon: AddonSession
  readonly #headerBytes: Buffer
  readonly #header: Uint32Array
  #last = { received: 0, dropped: 0 }
  #state: 'open' | 'closing' | 'ended' = 'open'

  /** @throws Fault that says what to do: CAPTURE_DENIED, or USAGE where the filter does not compile. */
  constructor(options: PcapSessionOptions, onPacket: () => void) {
    // Without permission libpcap does not say that there is no such interface.
    if (!isThere(options.device)) throw new InterfaceAbsent('CAPTURE_DENIED', noSuchInterface(options.device))
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
        // The one warning there is: the interface has no IPv4 address. That is common, and nothing depends on it.
        () => {},
        options.promiscuous,
      )
      this.linkType = linkTypeNumber(linkType)
    } catch (error) {
      throw openingFault(options.device, options.expression, error as Error)
    }
  }

  /** Bytes of the packet that were captured. */
  get captured(): number {
    return Math.min(this.#header[CAPTURED] ?? 0, this.bytes.length)
  }
  /** Time of the packet: seconds since 1970, and microseconds. */
  get seconds(): number {
    return this.#header[0] ?? 0
  }
  get microseconds(): number {
    return this.#header[1] ?? 0
  }

  /** Hands each packet of the ring to onPacket until the ring is empty. `lost`: the interface has vanished. */
  dispatch(): 'empty' | 'lost' | 'closed' {
    if (this.#state === 'ended') return 'closed'
    const outcome = this.#addon.dispatch(this.bytes, this.#headerBytes)
    if (outcome >= 0) return 'empty'
    // Of one that libpcap has closed the last figures were read before; of one whose interface is gone they can still be read.
    if (outcome === -1) this.readStats()
    this.#state = 'ended'
    return outcome === -1 ? 'lost' : 'closed'
  }

  /** Brings `received` and `dropped` up to date. */
  readStats(): void {
    // What comes to a capture that closes is no longer its own.
    if (this.#state !== 'open') return
    const { ps_recv, ps_drop } = this.#addon.stats()
    this.received += (ps_recv - this.#last.received + U32) % U32
    this.dropped += (ps_drop - this.#last.dropped + U32) % U32
    this.#last = { received: ps_recv, dropped: ps_drop }
  }

  /** Asks for the end; dispatch() answers `closed` once it came. */
  close(): void {
    if (this.#state !== 'open') return
    this.readStats()
    this.#state = 'closing'
    this.#addon.close()
  }
}

function isThere(device: string): boolean {
  const names = interfaceNames()
  return device === ANY_INTERFACE || names.length === 0 || names.includes(device)
}

function loadAddon(): PcapAddon {
  return createRequire(import.meta.url)('pcap/build/Release/pcap_binding.node') as PcapAddon
}

/** The addon names four link types and gives the number of the others in a sentence; names and numbers are those of libpcap's DLT_. */
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

const LIBPCAP_PACKAGES =
  'install it: "apt-get install libpcap0.8" on Debian and Ubuntu, "dnf install libpcap" on Red Hat and Fedora, "zypper install libpcap1" on SUSE'
const WITHOUT_PERMISSION = [
  'run as root, or give it CAP_NET_RAW: AmbientCapabilities=CAP_NET_RAW (systemd)',
  '--cap-add NET_RAW (container)',
  `setcap cap_net_raw=ep ${process.execPath}`,
].join(', ')

/** The interface is not there, or is down: it may be there the next time. */
export class InterfaceAbsent extends Fault {}

/** What the addon throws, or who loads it, as the Fault that it is. */
export function openingFault(name: string, expression: string, error: Error): Error {
  // The addon could not be unpacked: it says so itself.
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
  if (/libpcap\.so/.test(text)) return denied(`libpcap is missing; ${LIBPCAP_PACKAGES}`)
  if (
    expression !== '' &&
    /rejects all packets|filter expression|syntax|vlan|proto|host|port|net|illegal|unknown/i.test(text)
  ) {
    return new Fault('USAGE', `--filter: ${JSON.stringify(expression)}: ${text}`, { cause: error })
  }
  return denied(text || 'cannot be opened')
}
