import { httpsBatches } from './ingest-https.ts'

/** How fast events that arrive become durable in the service's buffer, by each way that they come. */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  await httpsBatches({ toy })
}
