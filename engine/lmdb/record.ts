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
  record.writeUInt32LE(checksumOf(record), CHECKSUM_OFFSET)
  return record
}

/**
 * Returns the payload of a record as a view of its bytes.
 *
 * @throws Fault STORE_DAMAGED if the checksum fails, STORE_VERSION if a newer release wrote it
 */
export function openRecord(record: Uint8Array, versionMax: number, what: string): Buffer {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.byteLength)
  if (bytes.length < RECORD_HEADER_BYTES) {
    throw new Fault('STORE_DAMAGED', `${what}: found ${bytes.length} bytes, expected at least ${RECORD_HEADER_BYTES}`)
  }
  if (bytes.readUInt32LE(CHECKSUM_OFFSET) !== checksumOf(bytes)) {
    throw new Fault('STORE_DAMAGED', `${what}: the checksum does not match; restore a backup`)
  }
  const version = bytes[VERSION_OFFSET] ?? 0
  if (version < 1 || version > versionMax) {
    throw new Fault('STORE_VERSION', `${what}: found version ${version}, this release reads 1 to ${versionMax}`)
  }
  return bytes.subarray(RECORD_HEADER_BYTES)
}

function checksumOf(record: Buffer): number {
  return crc32(record.subarray(RECORD_HEADER_BYTES), crc32(record.subarray(VERSION_OFFSET, CHECKSUM_OFFSET)))
}
