import { Action } from '../../engine/formats/action.ts'
import { FORMATS } from '../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES } from '../../engine/formats/log-line.ts'
import { BodyReader } from '../../engine/ingest/body-reader.ts'
import { SyslogMessage } from '../../engine/ingest/syslog/message.ts'
import { readSyslog } from '../../engine/ingest/syslog/read-message.ts'
import { PRODUCTS, type Product } from '../products/products.ts'
import { code, markdownTable } from './markdown.ts'

const LINE_BYTES_MAX = 8192

/** A table of each kind of product, made by reading the products' lines. */
export function productTables(): string {
  return Object.entries(PRODUCTS)
    .map(([kind, products]) => `### ${kind}\n\n${table(products)}`)
    .join('\n\n')
}

function table(products: readonly Product[]): string {
  const rows = products.map((product) => {
    const { format, fields } = readProduct(product)
    return [product.name, product.enable, product.transport, code(format), fields.join(', ')]
  })
  // A test reads a second line of some products, for which nothing else differs.
  const isOther = (row: readonly string[], at: number): boolean =>
    at === 0 || row.slice(1).join() !== rows[at - 1]?.slice(1).join()
  return markdownTable(['Product', 'Turn on', 'Transport', 'Format', 'Also read'], rows.filter(isOther))
}

/**
 * The format that reads the product's line, and the fields that it finds beside host and client.
 *
 * @throws Error if it finds no client
 */
function readProduct({ before = [], line }: Product): { format: string; fields: string[] } {
  const read = new LogLine(new Uint8Array(LINE_BYTES_MAX + SCRATCH_BYTES))
  const body = new BodyReader()
  for (const text of [...before, line]) {
    const bytes = Buffer.from(text)
    read.bytes.set(bytes)
    const message = new SyslogMessage()
    readSyslog(read.view, 0, bytes.length, message, read.referenceMs)
    body.read(read, message.msgStart, bytes.length)
  }
  if (read.clientEnd <= read.clientStart) throw new Error(`no client: ${line}`)
  const fields: string[] = []
  if (!Number.isNaN(read.timeMs)) fields.push('time')
  if (read.action !== Action.unknown) fields.push('action')
  if (read.userEnd > read.userStart) fields.push('user')
  if (read.bytesSent > 0 || read.bytesReceived > 0) fields.push('bytes')
  return { format: FORMATS[body.format]?.id ?? '', fields }
}
