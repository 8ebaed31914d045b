import { LOG_FILE } from '../engine/ingest/read-log.ts'
import { type ByteSource, openBytes, STANDARD_INPUT } from '../engine/kernel/process/byte-source.ts'
import { readHead } from '../engine/kernel/process/decompressed-bytes.ts'
import { catalogOf, loadCatalog, mergeChanges } from '../registry/catalog.ts'
import { type Matcher, NameMatcher } from '../registry/match.ts'
import { OwnMatcher } from '../registry/own-matcher.ts'
import { ORDER_BYTES_MAX } from './limits.ts'
import { readFile } from './read-file.ts'
import { ORDER_LENGTH_BYTES, type Order } from './report.ts'

/*
 * The process that reads an uploaded file for the console (report.ts has its protocol). It gets
 * neither secrets nor the data directory, and loads no native library, so that it runs under
 * Node's permission model without access to files other than the program's.
 */
async function main(): Promise<void> {
  const source = openBytes(STANDARD_INPUT, LOG_FILE)
  const { platforms = loadCatalog().platforms, serviceWide, own, windowStartMs } = await readOrder(source)
  const shared = new NameMatcher(catalogOf(mergeChanges(platforms, serviceWide)))
  const isChanged = own.platforms.length + own.disable.length > 0
  const matcher: Matcher = isChanged ? new OwnMatcher(shared, own) : shared
  const report = await readFile(source, { matcher, windowStartMs })
  // The rest of the file is not read.
  process.stdout.write(JSON.stringify(report), () => process.exit())
}

/** Written by the service, which has validated the registry changes. */
async function readOrder(source: ByteSource): Promise<Order> {
  const length = Buffer.from(await readHead(source, ORDER_LENGTH_BYTES)).readUInt32LE()
  if (length > ORDER_BYTES_MAX) throw new RangeError(`an order of ${length} bytes`)
  return JSON.parse(Buffer.from(await readHead(source, length)).toString()) as Order
}

await main()
