import { createCipheriv, hash } from 'node:crypto'

/**
 * Version and Destination Connection ID of a client's first Initial -> the keys that protect its
 * Initials. The keys are not secret: anyone who sees the packet can derive them (RFC 9001 §5.2).
 */

/** The parameters in which the readable versions differ. */
export interface QuicVersion {
  /** RFC 9001 §5.2: initial_salt, the key of HKDF-Extract. */
  readonly salt: Uint8Array
  /**
   * Info of HKDF-Expand for key, IV and header protection key: HkdfLabel and the counter of the
   * only block.
   */
  readonly keyInfo: Uint8Array
  readonly ivInfo: Uint8Array
  readonly headerKeyInfo: Uint8Array
  /** Added to the long packet types of RFC 9000 §17.2, modulo 4 (RFC 9369 §3.2). */
  readonly packetTypeShift: number
}

/** AES-128-GCM and AES-128-ECB (RFC 9001 §5.2, §5.4.3). HKDF uses SHA-256. */
const KEY_BYTES = 16
const IV_BYTES = 12
const SHA256_BYTES = 32

const CLIENT_SECRET_INFO = expandInfo('client in', SHA256_BYTES)

/** RFC 9001, and drafts 33 and 34. */
const RFC_9001 = parameters('38762cf7f55934b34d179ae6a4c80cadccbb7f0a', 'quic', 0)
/** RFC 9369 §3.3. */
const RFC_9369 = parameters('0dede3def700a6db819381be6e269dcbf9bd2ed9', 'quicv2', 1)
/** draft-ietf-quic-tls-29 §5.2, up to draft 32. */
const DRAFT_29 = parameters('afbfec289993d24c9e9786f19c6111e04390a899', 'quic', 0)
/** draft-ietf-quic-tls-23 §5.2, up to draft 28, and mvfst, which stayed at draft 27. */
const DRAFT_23 = parameters('c3eef712c72ebb5a11a7d2432bb46365bef9f502', 'quic', 0)
/** draft-ietf-quic-tls-17 §5.2, up to draft 22. mvfst still uses it. */
const DRAFT_22 = parameters('7fbcdb0e7c66bbe9193a96cd21519ebd7a02644a', 'quic', 0)

/** By version number: RFC 9000 §15, RFC 9369 §3.1; drafts are 0xff0000 plus their number. */
const VERSIONS: ReadonlyMap<number, QuicVersion> = new Map([
  [0x0000_0001, RFC_9001],
  [0x6b33_43cf, RFC_9369],
  [0xff00_0022, RFC_9001],
  [0xff00_0021, RFC_9001],
  [0xff00_0020, DRAFT_29],
  [0xff00_001f, DRAFT_29],
  [0xff00_001e, DRAFT_29],
  [0xff00_001d, DRAFT_29],
  [0xff00_001c, DRAFT_23],
  [0xff00_001b, DRAFT_23],
  [0xff00_001a, DRAFT_23],
  [0xff00_0019, DRAFT_23],
  [0xff00_0018, DRAFT_23],
  [0xff00_0017, DRAFT_23],
  [0xff00_0016, DRAFT_22],
  [0xface_b001, DRAFT_22],
  [0xface_b002, DRAFT_23],
  [0xface_b00e, DRAFT_23],
])

/**
 * RFC 9000 §15: ?a?a?a?a is reserved and names no version. A client sends such a version to provoke
 * the server's version list, and protects the Initial with a version that it speaks: one of these.
 */
const RESERVED_MASK = 0x0f0f_0f0f
const RESERVED = 0x0a0a_0a0a

/**
 * Returns the version with this number, or the most likely one for a reserved number. Undefined if
 * its Initials are not readable.
 */
export function quicVersion(version: number): QuicVersion | undefined {
  return (version & RESERVED_MASK) === RESERVED ? RFC_9001 : VERSIONS.get(version)
}

/**
 * Version numbers whose Initials are not readable, each as the value and the mask of the bits that
 * must agree: the working group's list of versions, and IANA's registry (RFC 9000 §22.2).
 */
const UNREAD_VERSIONS: readonly (readonly [value: number, mask: number])[] = [
  /** Drafts before 22, and any draft that is not in VERSIONS. */
  [0xff00_0000, 0xffff_ff00],
  /** Q0xx and T0xx of Google: three digits after the letter. */
  [0x5130_3030, 0xfff0_f0f0],
  [0x5430_3030, 0xfff0_f0f0],
  /** mvfst. */
  [0xface_b000, 0xffff_ff00],
  /** picoquic, "PCQ" or "PCP". */
  [0x5043_5000, 0xffff_fe00],
  /** quicly. */
  [0x91c1_7000, 0xffff_ff00],
  /** quant. */
  [0x4547_4700, 0xffff_ff00],
  /** MsQuic. */
  [0xabcd_0000, 0xffff_0000],
]

/** Whether this is a known version number whose Initials are not readable. */
export function isUnreadVersion(version: number): boolean {
  for (const [value, mask] of UNREAD_VERSIONS) if ((version & mask) === (value | 0)) return true
  return false
}

/** Another version whose keys may protect Initials with this number. */
export function alternativeVersion(version: number): QuicVersion | undefined {
  return (version & RESERVED_MASK) === RESERVED ? DRAFT_29 : undefined
}

/** Bytes of the keys of one connection, as store() writes them: key, IV, header protection key. */
export const INITIAL_KEYS_BYTES = KEY_BYTES + IV_BYTES + KEY_BYTES

/**
 * Keys of a client's packets of one connection, valid for all Initials to that Destination
 * Connection ID.
 */
export class InitialKeys {
  readonly key: Uint8Array
  readonly iv: Uint8Array
  readonly headerKey: Uint8Array

  private constructor(key: Uint8Array, iv: Uint8Array, headerKey: Uint8Array) {
    this.key = key
    this.iv = iv
    this.headerKey = headerKey
  }

  /**
   * RFC 9001 §5.2: `connectionId` is the Destination Connection ID of the first Initial (after a
   * Retry, of the first Initial that answers it).
   */
  static derive(version: QuicVersion, connectionId: Uint8Array): InitialKeys {
    setHmacKey(version.salt)
    const initialSecret = hmac(connectionId)
    setHmacKey(initialSecret)
    const clientSecret = hmac(CLIENT_SECRET_INFO)
    setHmacKey(clientSecret)
    return new InitialKeys(
      hmac(version.keyInfo).subarray(0, KEY_BYTES),
      hmac(version.ivInfo).subarray(0, IV_BYTES),
      hmac(version.headerKeyInfo).subarray(0, KEY_BYTES),
    )
  }

  /** Loads the keys that store() wrote at `at`. */
  static load(from: Uint8Array, at: number): InitialKeys {
    const iv = at + KEY_BYTES
    const headerKey = iv + IV_BYTES
    return new InitialKeys(
      from.subarray(at, iv),
      from.subarray(iv, headerKey),
      from.subarray(headerKey, headerKey + KEY_BYTES),
    )
  }

  /**
   * Writes INITIAL_KEYS_BYTES. Connections are stored in this form because an object with its
   * native ciphers takes 4 kB.
   */
  store(into: Uint8Array, at: number): void {
    into.set(this.key, at)
    into.set(this.iv, at + KEY_BYTES)
    into.set(this.headerKey, at + KEY_BYTES + IV_BYTES)
  }

  /** RFC 9001 §5.4.3: the first five of the 16 bytes are the mask. */
  headerMask(sample: Uint8Array): Uint8Array {
    return createCipheriv('aes-128-ecb', this.headerKey, null).update(sample)
  }
}

function parameters(salt: string, label: string, packetTypeShift: number): QuicVersion {
  return {
    salt: Buffer.from(salt, 'hex'),
    keyInfo: expandInfo(`${label} key`, KEY_BYTES),
    ivInfo: expandInfo(`${label} iv`, IV_BYTES),
    headerKeyInfo: expandInfo(`${label} hp`, KEY_BYTES),
    packetTypeShift,
  }
}

/**
 * RFC 8446 §7.1: HkdfLabel of length 2, label 1 + n, empty context 1. RFC 5869 §2.3: one block
 * suffices, with counter 1.
 */
function expandInfo(label: string, bytes: number): Uint8Array {
  const full = `tls13 ${label}`
  return Buffer.from([0, bytes, full.length, ...Buffer.from(full, 'latin1'), 0, 1])
}

/**
 * RFC 2104 over crypto.hash: 0.7 us per key, against 1.7 for createHmac and 7.8 for hkdfSync. The
 * digest is returned as latin1 text, which takes 0.23 us, against 0.86 for a Buffer.
 */
const HMAC_BLOCK_BYTES = 64
const HMAC_INNER = 0x36
const HMAC_OUTER = 0x5c
/** A connection ID has at most 255 bytes (RFC 8999 §5.1), an info about 20. */
const MESSAGE_BYTES_MAX = 255

const inner = Buffer.alloc(HMAC_BLOCK_BYTES + MESSAGE_BYTES_MAX)
const outer = Buffer.alloc(HMAC_BLOCK_BYTES + SHA256_BYTES)

/** Sets the key for the following calls of hmac(). The key is at most one block long. */
function setHmacKey(key: Uint8Array): void {
  inner.fill(HMAC_INNER, 0, HMAC_BLOCK_BYTES)
  outer.fill(HMAC_OUTER, 0, HMAC_BLOCK_BYTES)
  for (let at = 0; at < key.length; at++) {
    const byte = key[at] ?? 0
    inner[at] = byte ^ HMAC_INNER
    outer[at] = byte ^ HMAC_OUTER
  }
}

function hmac(message: Uint8Array): Uint8Array {
  inner.set(message, HMAC_BLOCK_BYTES)
  outer.write(
    hash('sha256', inner.subarray(0, HMAC_BLOCK_BYTES + message.length), 'binary'),
    HMAC_BLOCK_BYTES,
    'latin1',
  )
  return Buffer.from(hash('sha256', outer, 'binary'), 'latin1')
}
