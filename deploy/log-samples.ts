import { readFileSync } from 'node:fs'
import { readYaml } from '../registry/yaml.ts'

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

const SAMPLES_FILE = new URL('../../deploy/forwarders/samples.yaml', import.meta.url)
export const SAMPLES = readYaml(readFileSync(SAMPLES_FILE, 'utf8')).value as readonly Sample[]

/** A product that sends logs, and a line of its log with a request. */
export interface Product {
  readonly name: string
  /** What to switch on, so that its log names hosts. */
  readonly enable: string
  readonly transport: string
  /** As the service receives it: a syslog message, or a line of a file. */
  readonly line: string
  /** The requested host and the client in the line. */
  readonly host: string
  readonly client: string
  /** The version or documentation after which the line was written. */
  readonly source: string
  /** Lines before it that the line needs, such as the header of a table. */
  readonly before?: readonly string[]
}

const PRODUCTS_FILE = new URL('../../deploy/products/products.yaml', import.meta.url)

/** The products whose logs are tested, by kind. docs/reference/log-formats.md lists them. */
export const PRODUCTS = readYaml(readFileSync(PRODUCTS_FILE, 'utf8')).value as Readonly<
  Record<string, readonly Product[]>
>
