export { memoryFigures as run } from './ingest-syslog.ts'
