import type { VNode } from 'preact'
import type { Order } from '../../dry-run/report.ts'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { firstDayOfWindow } from '../../engine/scan/prepare.ts'
import { SERVICE_WIDE } from '../../engine/store/own-platforms.ts'
import { PageHead } from '../design/parts.tsx'
import { page, type Route, uploadForm } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import type { FileProcess } from '../try-file/file-process.ts'
import { FILE_FIELD, FILE_MIB_MAX, TRIAL_RULES_MAX } from '../try-file/limits.ts'
import type { Unready } from '../try-file/trials.ts'
import { receiveFile } from '../try-file/upload.ts'
import { TriedFile, type TriedView, triedFile } from './tried-file.tsx'

interface TryFileProps {
  readonly nowMs: number
  readonly mayReadTokens: boolean
  readonly error?: string
  readonly tried?: TriedView
}

/** A form for a file, below what the last file showed. */
function TryFile({ nowMs, mayReadTokens, error, tried }: TryFileProps) {
  return (
    <>
      <PageHead title="Try a file" about="What a capture or a log would show. Nothing of it is stored." />
      {tried !== undefined && <TriedFile view={tried} nowMs={nowMs} mayReadTokens={mayReadTokens} />}
      <FileForm title={tried === undefined ? 'Choose a file' : 'Try another file'} error={error} />
    </>
  )
}

function FileForm({ title, error }: { readonly title: string; readonly error: string | undefined }) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
      </header>
      <form class="stack body" method="post" action="/try-file" encType="multipart/form-data" data-drops>
        <div class="field">
          <label class="drop" for={FILE_FIELD}>
            <span data-drop-text>Capture or log</span>
            <input
              id={FILE_FIELD}
              name={FILE_FIELD}
              type="file"
              required
              aria-invalid={error === undefined ? undefined : 'true'}
              aria-describedby={error === undefined ? 'file-hint' : 'file-hint file-error'}
              data-bytes-max={FILE_MIB_MAX * 1024 * 1024}
              data-too-large={`The file is larger than ${FILE_MIB_MAX} MiB. Try a part of it`}
            />
          </label>
          <p id="file-hint" class="hint">
            A capture (pcap, pcapng), or a log of a firewall, proxy or DNS server. Plain, gzip or zstd, up to{' '}
            {FILE_MIB_MAX} MiB. Large files take up to a minute.
          </p>
          {error !== undefined && (
            <p id="file-error" class="error" role="alert">
              {error}
            </p>
          )}
        </div>
        <div class="row">
          <button class="first" type="submit" data-busy="Reading the file …">
            Read the file
          </button>
        </div>
      </form>
    </section>
  )
}

const TITLE = 'Try a file'
const PATH = '/try-file'

/** What a capture or a log would show, without storing it. */
export const TRY_FILE_ROUTES: readonly Route[] = [
  page(PATH, 'file.try', (visit) => visit.page(TITLE, PATH, content(visit))),
  uploadForm(PATH, 'file.try', async (visit, upload) => {
    const outcome = await receiveFile(upload, (isCanceled) => started(visit, isCanceled))
    const { counters } = visit.site
    if (outcome.kind === 'read') {
      counters.noteTriedFile('read')
      return visit.page(TITLE, PATH, content(visit, { tried: triedFile(visit, outcome) }))
    }
    const { status, message } = outcome
    counters.noteTriedFile(RETRY_STATUSES.has(status) ? 'busy' : status < 500 ? 'refused' : 'failed')
    const fields = RETRY_STATUSES.has(status) ? ['retry-after', String(RETRY_SECONDS)] : []
    return visit.page(TITLE, PATH, content(visit, { error: message }), { status, fields })
  }),
]

const RETRY_STATUSES: ReadonlySet<number> = new Set([429, 503])
const RETRY_SECONDS = 60

function content(visit: Visit, result: Pick<TryFileProps, 'error' | 'tried'> = {}): VNode {
  return TryFile({ nowMs: visit.nowMs, mayReadTokens: visit.may('token.read'), ...result })
}

/** Starts the process that reads the file, with the organization's registry. */
function started({ site, organization, nowMs }: Visit, isCanceled: () => boolean): Promise<FileProcess | Unready> {
  const { ownPlatforms } = site.store
  const order = site.store.environment.read((): Order | undefined => {
    if (site.registry.catalogOf(SERVICE_WIDE).rules.length > TRIAL_RULES_MAX) return undefined
    const data = site.store.registryReleases.inForce === undefined ? {} : { platforms: site.registry.base.platforms }
    return {
      ...data,
      serviceWide: ownPlatforms.changes(SERVICE_WIDE),
      own: ownPlatforms.changes(organization.id),
      windowStartMs: firstDayOfWindow(organization, nowMs) * DAY_MS,
    }
  })
  if (order === undefined) return Promise.resolve('registry')
  return site.fileTrials.start(organization.id, order, isCanceled)
}
