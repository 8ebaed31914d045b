import type { Order } from '../../dry-run/report.ts'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { firstDayOfWindow } from '../../engine/scan/prepare.ts'
import { SERVICE_WIDE } from '../../engine/store/own-platforms.ts'
import { statusOf } from '../../engine/store/secrets.ts'
import { ActionButton, Hidden } from '../design/form.tsx'
import { countOf, Notice, PageHead } from '../design/parts.tsx'
import type { Answer } from '../http/answer.ts'
import { form, page, type Route, uploadForm } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import type { AddedFile } from '../try-file/add-process.ts'
import type { FileProcess } from '../try-file/file-process.ts'
import { FILE_FIELD, FILE_MIB_MAX, TRIAL_RULES_MAX } from '../try-file/limits.ts'
import type { Unready } from '../try-file/trials.ts'
import { receiveFile } from '../try-file/upload.ts'
import { type Adding, type ReadFile, TriedFile, type TriedView, triedFile } from './tried-file.tsx'

interface TryFileProps {
  readonly visit: Visit
  readonly error?: string
  readonly tried?: TriedView
  readonly added?: Added | undefined
}

/** What became of a file that was added, or why it was not; and the form that adds it again. */
type Added = (AddedFile | { readonly problem: string }) & { readonly again: AddForm | undefined }

/** The fields of the form. */
type AddForm = Readonly<Record<'file' | 'token', string>>

/** A form for a file, below what the last file showed. */
function TryFile({ visit, error, tried, added }: TryFileProps) {
  return (
    <>
      <PageHead title="Try a file" about="What a capture or a log would show, before anything of it is stored." />
      {added !== undefined && <AddedNotice added={added} />}
      {tried !== undefined && <TriedFile visit={visit} view={tried} />}
      <FileForm title={tried === undefined ? 'Choose a file' : 'Try another file'} error={error} />
    </>
  )
}

function AddedNotice({ added }: { readonly added: Added }) {
  if ('problem' in added) {
    return (
      <Notice tone="bad" title="The file was not added">
        <p class="break">{added.problem}</p>
        <AddAgain form={added.again} />
      </Notice>
    )
  }
  const { name, matched, duplicates, outsideWindow, waiting, fault, again } = added
  return (
    <>
      <Notice title={matched === 0 ? 'No new event was added' : `${countOf(matched, 'event')} added`}>
        <p class="break">
          {name}
          {duplicates > 0 && `: ${countOf(duplicates, 'match was', 'matches were')} added before`}
          {outsideWindow > 0 && `: ${countOf(outsideWindow, 'match is', 'matches are')} older than the evidence window`}
          . {matched > outsideWindow && 'The next scan counts them.'}
        </p>
        {waiting > 0 && <ActionButton action="/scan">Scan now</ActionButton>}
      </Notice>
      {fault !== '' && (
        <Notice tone="warn" title="Only a part of the file was added">
          <p class="break">{fault}</p>
          <AddAgain form={again} />
        </Notice>
      )}
    </>
  )
}

function AddAgain({ form }: { readonly form: AddForm | undefined }) {
  if (form === undefined) return null
  return (
    <form method="post" action={`${PATH}/add`}>
      <Hidden fields={Object.entries(form)} />
      <button type="submit" data-busy="Adding …">
        Add it again
      </button>
    </form>
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

/** What a capture or a log would show, and the storing of a log that was tried. */
export const TRY_FILE_ROUTES: readonly Route[] = [
  page(PATH, 'file.try', (visit) => visit.page(TITLE, PATH, TryFile({ visit, added: visit.shownOnce<Added>() }))),
  uploadForm(PATH, 'file.try', async (visit, upload) => {
    const { counters, keptFiles } = visit.site
    const copy = visit.may('ingest.file') ? keptFiles.begin() : undefined
    const outcome = await receiveFile(upload, (isCanceled) => started(visit, isCanceled), copy)
    if (outcome.kind === 'read') {
      counters.note('triedFile', 'read')
      const tried = triedFile(visit, outcome, await adding(visit, outcome))
      return visit.page(TITLE, PATH, TryFile({ visit, tried }))
    }
    const { status, message } = outcome
    counters.note('triedFile', RETRY_STATUSES.has(status) ? 'busy' : status < 500 ? 'refused' : 'failed')
    const fields = RETRY_STATUSES.has(status) ? ['retry-after', String(RETRY_SECONDS)] : []
    return visit.page(TITLE, PATH, TryFile({ visit, error: message }), { status, fields })
  }),
  form(`${PATH}/add`, 'ingest.file', add),
]

/** Keeps the copy of a file that can be added. */
async function adding(visit: Visit, { name, report, copy }: ReadFile): Promise<Adding> {
  const { organization, nowMs, identity, site } = visit
  if (copy === undefined) return { kind: 'no' }
  if (report.kind === 'capture' || report.outcomes.matched === 0 || report.ended !== 'complete') {
    await copy.remove()
    return { kind: 'no' }
  }
  if (copy.problem !== '') return { kind: 'not kept', problem: copy.problem }
  const id = await site.keptFiles.keep(copy, { organizationId: organization.id, sessionId: identity.session.id, name })
  const tokens = site.store.monitoringTokens
    .ofOrganization(organization.id)
    .filter((token) => statusOf(token, nowMs) === 'active')
    .map((token) => [token.id, token.label] as const)
  return { kind: 'kept', id, organizationName: organization.name, tokens }
}

/** Adds a kept file, and says on the page what became of it. */
async function add(visit: Visit): Promise<Answer> {
  const { organization, identity, site, request } = visit
  const fields: AddForm = { file: request.fields.text('file'), token: request.fields.text('token') }
  try {
    const added = await site.keptFiles.add(fields.file, {
      ...{ organizationId: organization.id, sessionId: identity.session.id, memberName: identity.member.name },
      tokenId: fields.token,
    })
    const again = added.fault === '' ? undefined : fields
    return visit.redirectToShow(PATH, { ...added, again } satisfies Added)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const again = error.code === 'NOT_FOUND' ? undefined : fields
    return visit.redirectToShow(PATH, { problem: `${error.code}: ${error.message}`, again } satisfies Added)
  }
}

const RETRY_STATUSES: ReadonlySet<number> = new Set([429, 503])
const RETRY_SECONDS = 60

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
