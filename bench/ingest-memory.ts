import { memoryOverMessages } from './ingest-syslog.ts'

/** Apart from the other figures of ingest, for it takes minutes. */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  await memoryOverMessages({ toy })
}
