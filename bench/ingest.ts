import { everyFormat } from './formats.ts'
import { httpsBatches } from './ingest-https.ts'
import { syslogMessages } from './ingest-syslog.ts'

/** How fast what arrives becomes durable in the service's buffer, by each way that it comes. */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  await syslogMessages({ toy })
  everyFormat({ toy })
  await httpsBatches({ toy })
}
