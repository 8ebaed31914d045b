import { crc32 } from 'node:zlib'
import { Fault } from '../process/error-codes.ts'

/*
 * The form of every stored value:
 *
 *   offset  width  content
 *   0       1      version of the payload's format, from 1
 *   1       4      CRC-32 (ISO 3309, as in gzip) of version byte and payload, little-endian
 *   5       n      payload
 */
const VERSION_OFFSET = 0
const CHECKSUM_OFFSET = 1
export const RECORD_HEADER_BYTES = 5

/** Prefixes the payload with version byte and checksum. */
export function sealRecord(version: number, payload: Uint8Array): Buffer {
  const record = Buffer.allocUnsafe(RECORD_HEADER_BYTES + payload.length)
  record.set(payload, RECORD_HEADER_BYTES)
  return sealInPlace(version, record)
}

/** Completes a record whose payload already follows its RECORD_HEADER_BYTES header bytes. */
export function sealInPlace(version: number, record: Buffer): Buffer {
  record[VERSION_OFFSET] = version
  record.writeUInt32LE(checksumOf(version, record.subarray(RECORD_HEADER_BYTES)), CHECKSUM_OFFSET)
  return record
}

/**
 * Returns the payload of a record as a view of its bytes.
 *
 * @throws Fault STORE_DAMAGED if the checksum fails, STORE_VERSION if a newer release wrote it
 */
export function openRecord(record: Uint8Array, versionMax: number, what: string): Buffer {
  // The length of a reused buffer of lmdb-js is that of the value, its byteLength is not.
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.length)
  if (bytes.length < RECORD_HEADER_BYTES) {
    throw new Fault('STORE_DAMAGED', `${what}: found ${bytes.length} bytes, expected at least ${RECORD_HEADER_BYTES}`)
  }
  const version = bytes[VERSION_OFFSET] ?? 0
  const payload = bytes.subarray(RECORD_HEADER_BYTES)
  if (bytes.readUInt32LE(CHECKSUM_OFFSET) !== checksumOf(version, payload)) {
    throw new Fault('STORE_DAMAGED', `${what}: the checksum does not match; restore a backup`)
  }
  if (version < 1 || version > versionMax) {
    throw new Fault('STORE_VERSION', `${what}: found version ${version}, this release reads 1 to ${versionMax}`)
  }
  return payload
}

/** The CRC-32 of each version byte, where the checksum of a record begins. */
const VERSION_CHECKSUMS = Array.from({ length: 256 }, (_, version) => crc32(Uint8Array.of(version)))

function checksumOf(version: number, payload: Uint8Array): number {
  return crc32(payload, VERSION_CHECKSUMS[version])
}
