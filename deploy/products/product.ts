/** A product that sends logs, and one of its lines with a request. */
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

/** One JSON object in a line. */
export function json(value: object): string {
  return JSON.stringify(value)
}
