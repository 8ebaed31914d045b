import { everyFormat } from './formats.ts'
import { httpsBatches } from './ingest-https.ts'
import { syslogMessages } from './ingest-syslog.ts'

/** Speed from arrival to the service's durable buffer, for each transport. */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  await syslogMessages({ toy })
  everyFormat({ toy })
  await httpsBatches({ toy })
}
