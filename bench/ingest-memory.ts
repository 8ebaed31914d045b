import { memoryOverMessages } from './ingest-syslog.ts'

/** Separate from the other ingest benchmarks, because it takes minutes. */
export async function run({ toy }: { toy: boolean }): Promise<void> {
  await memoryOverMessages({ toy })
}
