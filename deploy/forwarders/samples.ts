import { readFileSync } from 'node:fs'
import { readYaml } from '../../registry/yaml.ts'

/**
 * A log line of a device, and what the service reads from it. Shown in docs/collect/, and tested.
 */
export interface Sample {
  /** The family in the specification. Only in the first sample of a family. */
  readonly family?: string
  readonly device: string
  /** The id of the format that recognizes it. */
  readonly format: string
  /** The line, after its header lines, if any. */
  readonly lines: readonly string[]
  readonly host: string
  readonly client: string
}

const FILE = new URL('../../../deploy/forwarders/samples.yaml', import.meta.url)
export const SAMPLES = readYaml(readFileSync(FILE, 'utf8')).value as readonly Sample[]
