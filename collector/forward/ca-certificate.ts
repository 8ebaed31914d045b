import { readFileSync } from 'node:fs'
import { Fault } from '../../engine/process/error-codes.ts'
import { notReadable } from '../../engine/process/ownership.ts'

/** Reads the PEM file of --ca. @throws Fault USAGE if it cannot be read. */
export function readCaCertificate(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const denied = notReadable(error)
    const why = denied === undefined ? (error as Error).message : `${denied.found}; ${denied.remedy}`
    throw new Fault('USAGE', `--ca: ${why}`, { cause: error })
  }
}
