import { readFileSync } from 'node:fs'
import { Fault } from '../../engine/process/error-codes.ts'

/** The PEM file that --ca names. @throws Fault USAGE where it cannot be read. */
export function readAuthority(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new Fault('USAGE', `--ca: ${(error as Error).message}`, { cause: error })
  }
}
