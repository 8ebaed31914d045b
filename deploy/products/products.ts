import { readFileSync } from 'node:fs'
import { readYaml } from '../../registry/yaml.ts'

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

const FILE = new URL('../../../deploy/products/products.yaml', import.meta.url)

/** The products whose logs are tested, by kind. docs/reference/log-formats.md lists them. */
export const PRODUCTS = readYaml(readFileSync(FILE, 'utf8')).value as Readonly<Record<string, readonly Product[]>>
