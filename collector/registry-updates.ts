import { closeSync, fsyncSync, openSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { asUser, type Ids } from '../engine/kernel/process/become-user.ts'
import { assertExpected, isExpected, logFailure, systemErrorText } from '../engine/kernel/process/failure.ts'
import { faultPoint } from '../engine/kernel/process/fault-point.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import { writeAll } from '../engine/kernel/process/new-file.ts'
import { registryRoots } from '../engine/kernel/process/registry-setting.ts'
import { builtInData } from '../registry/built-in.ts'
import { compareVersions } from '../registry/data-version.ts'
import { dataVersion } from '../registry/data-version-schema.ts'
import type { ReleasedData } from '../registry/released-data.ts'
import { isoDay } from '../registry/schema-parts.ts'
import {
  dataOf,
  expiryProblem,
  type SignedRelease,
  UpdateFileError,
  verifiedRelease,
} from '../registry/signed-release.ts'
import type { CollectorSettings } from './config.ts'
import { connectionProblem } from './forward/connection.ts'
import { HttpsClient, jsonOf } from './forward/https-client.ts'
import { REGISTRY_RETRY_MS, REGISTRY_RETRY_MS_MAX } from './limits.ts'
import { OUTBOX_IN_MEMORY, REGISTRY_FILE, REGISTRY_PART } from './outbox/outbox-store.ts'

const REGISTRY_PATH = '/ingest/v1/registry'
/** Update files that may return by a rollback, older than the last one and of a replaced key. */
const ACCEPTED_MAX = 8
/** The field in which the service reports a rollback. */
const ROLLBACK_FIELD = 'posture-registry-rollback'

/** The last good release, in the directory of the outbox. */
const keptRelease = z.object({
  /** The highest number of a release key. */
  key_number: z.int().min(0),
  /** The newest version that was used; '': only the built-in one, or a program before 2026-12. */
  newest: dataVersion.or(z.literal('')).default(''),
  /** The last day of that version. */
  newest_valid_until: isoDay.or(z.literal('')).default(''),
  /** SHA-256 of the update files that were verified, the last one first. */
  accepted: z.array(z.string().max(64)).max(ACCEPTED_MAX),
  /** The update file in base64. '' if the service went back to its built-in registry. */
  update: z.base64(),
})
type Kept = z.infer<typeof keptRelease>

interface VerifiedRelease {
  readonly signed: SignedRelease
  readonly data: ReleasedData
}

const builtInAnswer = z.object({ built_in: z.literal(true) })

/**
 * The registry's data of a collector: the built-in one, or the newer release that the service uses.
 * The service says its version in each answer. The collector fetches another version from it,
 * verifies it by its own root keys, and keeps the last good one for the next start.
 */
export class RegistryUpdates {
  readonly #settings: CollectorSettings
  readonly #log: Logger
  readonly #roots: ReturnType<typeof registryRoots>
  readonly #builtIn = builtInData()
  /** undefined: nothing is stored. */
  readonly #directory: string | undefined
  #kept: Kept = { key_number: 0, newest: '', newest_valid_until: '', accepted: [], update: '' }
  #release: VerifiedRelease | undefined
  #client: HttpsClient | undefined
  #closed = false
  /** The last version that the service said and that needs no request. */
  #settled = ''
  #retryAtMs = 0
  #failures = 0
  /** Called with the data in force when it has changed. */
  onChange: (data: ReleasedData) => Promise<void> = async () => {}

  /**
   * @param user who uses the outbox; see Collector
   * @throws Fault USAGE if the file of root keys cannot be used
   */
  constructor(settings: CollectorSettings, log: Logger, user: Ids | undefined) {
    this.#settings = settings
    this.#log = log
    this.#roots = registryRoots(settings.registryRoot)
    this.#directory = settings.outbox === OUTBOX_IN_MEMORY ? undefined : settings.outbox
    if (user === undefined) this.#readKept()
    else asUser(user, () => this.#readKept())
  }

  /** The data in force. */
  get data(): ReleasedData {
    return this.#release?.data ?? this.#builtIn
  }

  /** Why the data in force should be replaced; '' while it is valid. */
  get problem(): string {
    const { newest: version, newest_valid_until: validUntil } = this.#kept
    // Also after a rollback: an attacker with the service could make it last.
    const isReplaced = version === '' || compareVersions(this.data.version, version) > 0
    return isReplaced ? '' : expiryProblem({ version, validUntil }, Date.now())
  }

  /** Takes the version that the service uses. Fetches it if the collector has another one. */
  async announce(version: string): Promise<void> {
    if (version === this.data.version || version === this.#settled || this.#roots.length === 0) return
    if (this.#client !== undefined || this.#closed || performance.now() < this.#retryAtMs) return
    this.#client = new HttpsClient(this.#settings)
    try {
      await this.#fetch(this.#client, version)
      this.#settled = version
      this.#failures = 0
    } catch (error) {
      this.#retryAtMs = performance.now() + Math.min(REGISTRY_RETRY_MS * 2 ** this.#failures++, REGISTRY_RETRY_MS_MAX)
      if (!this.#closed) this.#logFailure(error, version, this.#client)
    } finally {
      await this.#client.close()
      this.#client = undefined
    }
  }

  /** Aborts a download. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#client?.close()
  }

  #logFailure(error: unknown, version: string, { peer }: HttpsClient): void {
    const message = 'the registry was not updated; the one before stays in use'
    if (!isExpected(error)) return logFailure(this.#log, error, message, { fields: { version } })
    const why = error instanceof UpdateFileError ? error.message : connectionProblem(error, peer).why
    this.#log.warn({ version, why }, message)
  }

  async #fetch(client: HttpsClient, version: string): Promise<void> {
    const tag = this.#release && `"${this.#release.signed.sha256}"`
    const { status, headers, bytes } = await client.get(
      REGISTRY_PATH,
      tag === undefined ? {} : { 'if-none-match': tag },
    )
    if (status === 304 && tag !== undefined) return
    if (status !== 200) throw new UpdateFileError(`the service answered ${status}`)
    const isRollback = headers[ROLLBACK_FIELD] === 'true'
    if (headers['content-type'] === 'application/json') {
      if (!builtInAnswer.safeParse(jsonOf(bytes.toString('utf8'))).success) {
        throw new UpdateFileError('the answer is not one of the service')
      }
      if (!isRollback) this.#refuseOlder(this.#builtIn.version)
      return this.#useBuiltIn()
    }
    const signed = this.#accepted(bytes)
    // The collector has used this very release before.
    const isReturn = isRollback && this.#kept.accepted.includes(signed.sha256)
    const isNewer = compareVersions(signed.version, this.#builtIn.version) > 0
    if (!isReturn) this.#refuseOlder(isNewer ? signed.version : this.#builtIn.version)
    const data = dataOf(signed)
    faultPoint('registry:downloaded')
    if (!isNewer) {
      const versions = { version, builtIn: this.#builtIn.version }
      this.#log.info(versions, 'the service has an older registry than this collector, which keeps its own')
      return this.#useBuiltIn()
    }
    const accepted = [signed.sha256, ...this.#kept.accepted.filter((each) => each !== signed.sha256)]
    this.#keep({
      key_number: Math.max(this.#kept.key_number, signed.keyNumber),
      ...(isReturn
        ? { newest: this.#kept.newest, newest_valid_until: this.#kept.newest_valid_until }
        : newestOf(signed)),
      accepted: accepted.slice(0, ACCEPTED_MAX),
      update: bytes.toString('base64'),
    })
    faultPoint('registry:kept')
    await this.#use({ signed, data })
  }

  /** @throws UpdateFileError */
  #accepted(bytes: Uint8Array): SignedRelease {
    const signed = verifiedRelease(bytes, this.#roots)
    const { key_number: keyNumber, accepted } = this.#kept
    if (signed.keyNumber >= keyNumber || accepted.includes(signed.sha256)) return signed
    throw new UpdateFileError(`release key ${signed.keyNumber} signed it, which key ${keyNumber} has replaced`)
  }

  /**
   * An attacker who controls the service must not be able to remove platforms from the registry by
   * means of an older release. @throws UpdateFileError
   */
  #refuseOlder(version: string): void {
    const { newest } = this.#kept
    if (newest === '' || compareVersions(version, newest) >= 0) return
    throw new UpdateFileError(`it is older than ${newest}, which this collector has used`)
  }

  async #useBuiltIn(): Promise<void> {
    if (this.#release === undefined) return
    this.#keep({ ...this.#kept, update: '' })
    await this.#use(undefined)
  }

  async #use(release: VerifiedRelease | undefined): Promise<void> {
    const before = this.data.version
    this.#release = release
    this.#log.info({ before, version: this.data.version }, 'the registry was changed')
    await this.onChange(this.data)
  }

  /** A collector that cannot write uses the release until it ends. */
  #keep(kept: Kept): void {
    this.#kept = kept
    if (this.#directory === undefined) return
    try {
      const part = join(this.#directory, REGISTRY_PART)
      const file = openSync(part, 'w', 0o600)
      try {
        writeAll(file, Buffer.from(JSON.stringify(kept)))
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      faultPoint('registry:written')
      renameSync(part, join(this.#directory, REGISTRY_FILE))
    } catch (error) {
      assertExpected(error)
      this.#log.warn({ why: systemErrorText(error) }, 'the registry was not stored; a restart fetches it again')
    }
  }

  #readKept(): void {
    if (this.#directory === undefined || this.#roots.length === 0) return
    let text: string
    try {
      text = readFileSync(join(this.#directory, REGISTRY_FILE), 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT') this.#ignoreKept(code ?? String(error))
      return
    }
    const parsed = keptRelease.safeParse(jsonOf(text))
    if (!parsed.success) return this.#ignoreKept('the file is damaged')
    this.#kept = parsed.data
    if (parsed.data.update === '') return
    try {
      const signed = this.#accepted(Buffer.from(parsed.data.update, 'base64'))
      // A program before 2026-12 wrote the file.
      if (this.#kept.newest === '') this.#kept = { ...this.#kept, ...newestOf(signed) }
      if (compareVersions(signed.version, this.#builtIn.version) > 0) this.#release = { signed, data: dataOf(signed) }
    } catch (error) {
      if (!(error instanceof UpdateFileError)) throw error
      this.#ignoreKept(error.message)
    }
  }

  #ignoreKept(why: string): void {
    this.#log.warn({ file: REGISTRY_FILE, why }, 'the stored registry is not used; the service is asked for it again')
  }
}

function newestOf({ version, validUntil }: SignedRelease): Pick<Kept, 'newest' | 'newest_valid_until'> {
  return { newest: version, newest_valid_until: validUntil }
}
