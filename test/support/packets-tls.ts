import { u16, u24 } from './packets.ts'

/** RFC 8446 §4.2: extension types. */
const SERVER_NAME = 0
const SUPPORTED_GROUPS = 10
const APPLICATION_LAYER_PROTOCOL = 16
const PADDING = 21
const SUPPORTED_VERSIONS = 43
const KEY_SHARE = 51
const ENCRYPTED_CLIENT_HELLO = 0xfe0d

/** RFC 8701: a reserved value for cipher suites, groups and extensions. */
const GREASE = 0x0a0a
const X25519 = 0x001d
const X25519_MLKEM768 = 0x11ec

export interface ClientHelloFields {
  /**
   * The host_name. Without one, the hello has no server_name. A Buffer allows bytes that are not
   * text.
   */
  readonly serverName?: string | Buffer
  readonly grease?: boolean
  /** Adds a key share of X25519MLKEM768. The hello then has about 1.8 kB. */
  readonly postQuantum?: boolean
  /** Puts server_name after all other extensions. */
  readonly serverNameLast?: boolean
  readonly sessionIdBytes?: number
  /** false: without ALPN, as Tor sends it. */
  readonly alpn?: false
  /** Complete extensions to append. */
  readonly moreExtensions?: readonly Buffer[]
  /** Seed of the fields that a real client fills at random. The same seed makes the same hello. */
  readonly seed?: number
}

/** The handshake message: type, length, then RFC 8446 §4.1.2. */
export function clientHello(fields: ClientHelloFields): Buffer {
  const random = fill(fields.seed ?? 1)
  const grease = fields.grease === true
  const suites = [...(grease ? [GREASE] : []), 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f]
  const groups = [...(grease ? [GREASE] : []), ...(fields.postQuantum === true ? [X25519_MLKEM768] : []), X25519]
  const shares = [
    ...(fields.postQuantum === true ? [u16(X25519_MLKEM768), vector16(random(1216))] : []),
    u16(X25519),
    vector16(random(32)),
  ]
  const serverName = fields.serverName === undefined ? [] : [extension(SERVER_NAME, serverNameList(fields.serverName))]
  const others = [
    extension(SUPPORTED_GROUPS, vector16(Buffer.concat(groups.map(u16)))),
    ...(fields.alpn === false
      ? []
      : [extension(APPLICATION_LAYER_PROTOCOL, vector16(Buffer.from('\x02h2\x08http/1.1', 'latin1')))]),
    extension(SUPPORTED_VERSIONS, vector8(Buffer.concat([0x0304, 0x0303].map(u16)))),
    extension(KEY_SHARE, vector16(Buffer.concat(shares))),
    // RFC 7685. Real post-quantum hellos have about 1.8 kB, because of extensions that do not
    // matter here.
    ...(fields.postQuantum === true ? [extension(PADDING, Buffer.alloc(320))] : []),
  ]
  const extensions = [
    ...(grease ? [extension(GREASE, Buffer.alloc(0))] : []),
    ...(fields.serverNameLast === true ? [...others, ...serverName] : [...serverName, ...others]),
    ...(fields.moreExtensions ?? []),
  ]
  const body = Buffer.concat([
    u16(0x0303),
    random(32),
    vector8(random(fields.sessionIdBytes ?? 32)),
    vector16(Buffer.concat(suites.map(u16))),
    vector8(Buffer.from([0])),
    vector16(Buffer.concat(extensions)),
  ])
  return Buffer.concat([Buffer.from([1]), u24(body.length), body])
}

/** RFC 6066 §3 */
export function serverNameList(hostName: string | Buffer): Buffer {
  return vector16(Buffer.concat([Buffer.from([0]), vector16(Buffer.from(hostName as string))]))
}

export function extension(type: number, bytes: Buffer): Buffer {
  return Buffer.concat([u16(type), vector16(bytes)])
}

/** RFC 9849 §5: encrypted_client_hello of the outer hello, with the contents of GREASE (§6.2). */
export function encryptedClientHello(seed = 1): Buffer {
  const random = fill(seed)
  // Fields: outer; HKDF-SHA256 with AES-128-GCM; config_id; enc; payload.
  const header = Buffer.from([0, 0, 1, 0, 1, 42])
  return extension(ENCRYPTED_CLIENT_HELLO, Buffer.concat([header, vector16(random(32)), vector16(random(208))]))
}

/**
 * RFC 5246 appendix E.2: the SSL 2.0 hello with which old clients offered later versions. It has no
 * extensions.
 */
export function sslv2Hello(seed = 1): Buffer {
  const suites = Buffer.from('00002f000035010080', 'hex')
  const body = [Buffer.from([1, 3, 1]), u16(suites.length), u16(0), u16(16), suites, fill(seed)(16)]
  const length = body.reduce((total, part) => total + part.length, 0)
  return Buffer.concat([u16(0x8000 | length), ...body])
}

/** RFC 8446 §5.1: the handshake message in TLS records of at most `fragmentBytes`. */
export function tlsRecords(handshake: Buffer, fragmentBytes = 16_384): Buffer {
  const records: Buffer[] = []
  for (let at = 0; at < handshake.length; at += fragmentBytes) {
    const fragment = handshake.subarray(at, at + fragmentBytes)
    records.push(Buffer.from([22, 3, 1]), vector16(fragment))
  }
  return Buffer.concat(records)
}

/** A record of application data. */
export function applicationData(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([23, 3, 3]), vector16(bytes)])
}

function vector8(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

function vector16(bytes: Buffer): Buffer {
  return Buffer.concat([u16(bytes.length), bytes])
}

/**
 * Bytes from a seed, by a linear congruential generator. The bytes need to differ, not to be
 * secret.
 */
export function fill(seed: number): (bytes: number) => Buffer {
  let state = seed >>> 0
  return (bytes) => {
    const filled = Buffer.alloc(bytes)
    for (let at = 0; at < bytes; at++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      filled[at] = state >>> 24
    }
    return filled
  }
}
