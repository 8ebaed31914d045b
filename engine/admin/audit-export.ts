import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isoSeconds } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import { syncDirectory } from '../process/sync-directory.ts'
import { jsonLine } from '../process/table.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import { SERVICE_WIDE } from '../store/own-platforms.ts'

/** Entries of the audit log as JSON, one per line, in a new file that only its owner can read. */
export class AuditExport {
  readonly path: string
  readonly #organization: string
  readonly #file: number

  /** @throws Fault AUDIT_FILE where the file exists or cannot be created. */
  constructor(path: string, organization: string) {
    this.path = resolve(path)
    this.#organization = organization
    this.#file = this.#tried('create', () => openSync(this.path, 'wx', 0o600))
  }

  /** Returns when the entries are on disk. @throws Fault AUDIT_FILE. */
  write(entries: readonly AuditEntry[]): void {
    this.#tried('write', () => {
      for (const entry of entries) writeSync(this.#file, `${jsonLine(auditRow(entry, this.#organization))}\n`)
      fsyncSync(this.#file)
      syncDirectory(dirname(this.path))
    })
  }

  close(): void {
    closeSync(this.#file)
  }

  /** For an export of something that was not done. */
  discard(): void {
    rmSync(this.path, { force: true })
  }

  #tried<T>(what: string, work: () => T): T {
    try {
      return work()
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      const why = code === 'EEXIST' ? 'the file exists' : (code ?? message)
      throw new Fault('AUDIT_FILE', `--audit-file ${this.path}: cannot ${what}: ${why}; name another file`, {
        cause: error,
      })
    }
  }
}

/** An entry with the field names that `audit list --json` prints. */
export function auditRow(
  { organizationId, timeMs, actor, action, subject, details }: AuditEntry,
  name: string | undefined,
): Record<string, unknown> {
  const isServiceWide = organizationId === SERVICE_WIDE
  return {
    time: isoSeconds(timeMs),
    organization_id: isServiceWide ? null : organizationId,
    organization: isServiceWide ? null : (name ?? organizationId),
    ...{ actor, action, subject, details },
  }
}
