import { candidatesOf, type ShownCandidate } from '../../engine/admin/candidates.ts'
import type { CandidateSignal } from '../../registry/candidate-names.ts'
import { CsvLink, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn, timeColumn } from '../design/table.tsx'
import { redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/candidates'

interface CandidatesProps {
  readonly candidates: Paged<ShownCandidate>
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly isDismissed: boolean
  readonly mayAdd: boolean
  readonly mayMark: boolean
  readonly done: string
  /** The candidate that was dismissed; '' if it no longer is. */
  readonly doneName: string
}

const DONE: Readonly<Record<string, string>> = {
  dismissed: 'The candidate is dismissed. It stays dismissed when it is requested again',
  restored: 'The candidate is listed again',
}

const SIGNAL_WORDS: Readonly<Record<CandidateSignal, string>> = {
  ai_domain: 'below .ai',
  ai_word: '"ai" in the name',
  ai_term: 'AI term in the name',
  known_brand: 'brand of a known platform',
  known_site: 'site of a known platform',
  device_category: 'AI category of a firewall or proxy',
  with_ai: 'requested with AI platforms',
  several_clients: 'several clients',
}

/** Names that no platform has and that look like AI services. */
function CandidatesPage(props: CandidatesProps) {
  const { candidates, query, nowMs, isDismissed, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead
        title="Candidates"
        about="Names in logs that no platform has and that look like AI services. They are guesses, and count nowhere"
      >
        {candidates.total > 0 && <CsvLink path={PATH} query={query} />}
      </PageHead>
      {title !== undefined && (
        <Notice title={title}>
          {done === 'dismissed' && props.mayMark && props.doneName !== '' && (
            <form method="post" action={`${PATH}/${encodeURIComponent(props.doneName)}/restore`}>
              <button type="submit">Undo</button>
            </form>
          )}
        </Notice>
      )}
      {candidates.total === 0 ? (
        <Empty title={isDismissed ? 'No dismissed candidate' : 'No candidate'}>
          <p class="muted">Candidates appear here when messages of logs name them.</p>
        </Empty>
      ) : (
        <Card title={isDismissed ? 'Dismissed' : 'Candidates'} note={countText(candidates.total)} bare>
          <Table id="candidates" label="Candidates" columns={columns(nowMs, props)} rows={candidates.rows} />
        </Card>
      )}
      <NumberedPages of={candidates} query={query} />
      <p class="small">
        {isDismissed ? <a href={PATH}>Candidates</a> : <a href={`${PATH}?show=dismissed`}>Dismissed candidates</a>}
      </p>
    </>
  )
}

function candidateColumns(nowMs: number): readonly Column<ShownCandidate>[] {
  return [
    {
      ...textColumn('name', 'Name', ({ name }: ShownCandidate) => name),
      cell: ({ name, signals }) => (
        <>
          <strong class="break">{name}</strong>
          <p class="small muted">{signals.map((signal) => SIGNAL_WORDS[signal]).join(', ')}</p>
        </>
      ),
    },
    { id: 'signals', name: 'Signals', csv: ({ signals }) => signals.join(' ') },
    countColumn('score', 'Score', ({ score }) => score),
    countColumn('requests', 'Requests', ({ requests }) => requests),
    {
      id: 'clients',
      name: 'Clients',
      cell: ({ clients }) => (clients === undefined ? '' : countText(clients)),
      csv: ({ clients }) => clients ?? '',
      number: true,
    },
    timeColumn('first-seen', 'First seen', nowMs, ({ firstSeenMs }) => firstSeenMs),
    timeColumn('last-seen', 'Last seen', nowMs, ({ lastSeenMs }) => lastSeenMs),
  ]
}

function columns(nowMs: number, { isDismissed, mayAdd, mayMark }: CandidatesProps): readonly Column<ShownCandidate>[] {
  const verb = isDismissed ? 'restore' : 'dismiss'
  const word = isDismissed ? 'Restore' : 'Dismiss'
  return [
    ...candidateColumns(nowMs),
    ...(mayAdd && !isDismissed
      ? [
          {
            id: 'add',
            name: 'Add',
            cell: ({ name }: ShownCandidate) => (
              <a href={`/own-platforms?${new URLSearchParams({ name, domains: name })}`} aria-label={`Add ${name}`}>
                Add
              </a>
            ),
            quiet: true,
          },
        ]
      : []),
    ...(mayMark
      ? [
          {
            id: verb,
            name: word,
            cell: ({ name }: ShownCandidate) => (
              <form method="post" action={`${PATH}/${encodeURIComponent(name)}/${verb}`}>
                <button type="submit" aria-label={`${word} ${name}`}>
                  {word}
                </button>
              </form>
            ),
            quiet: true,
          },
        ]
      : []),
  ]
}

export const CANDIDATE_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => {
    const { query } = visit.request
    const doneName = query.get('name') ?? ''
    const { candidates, environment } = visit.site.store
    const done = environment.read(() => candidates.get(visit.organization.id, doneName))
    const content = CandidatesPage({
      candidates: paged(
        environment.read(() => candidatesView(visit)),
        query,
      ),
      query,
      nowMs: visit.nowMs,
      isDismissed: isDismissedList(query),
      mayAdd: visit.may('registry.add'),
      mayMark: visit.may('candidate.dismiss'),
      done: query.get('done') ?? '',
      doneName: (done?.dismissedAtMs ?? 0) > 0 ? doneName : '',
    })
    return visit.page('Candidates', PATH, content)
  }),
  csvFile({
    path: PATH,
    access: 'discovery.read',
    columns: ({ nowMs }) => candidateColumns(nowMs),
    rows: candidatesView,
  }),
  form(`${PATH}/:name/dismiss`, 'candidate.dismiss', async (visit, { name }) => {
    await visit.change('candidate.dismiss', { name })
    return redirect(`${PATH}?${new URLSearchParams({ done: 'dismissed', name })}`)
  }),
  form(`${PATH}/:name/restore`, 'candidate.restore', async (visit, { name }) => {
    await visit.change('candidate.restore', { name })
    return redirect(`${PATH}?show=dismissed&done=restored`)
  }),
]

/** The candidates of the organization, or those that were dismissed. */
function candidatesView({ site, organization, request }: Visit): readonly ShownCandidate[] {
  return candidatesOf(site.store, site.registry, organization.id, isDismissedList(request.query))
}

function isDismissedList(query: URLSearchParams): boolean {
  return query.get('show') === 'dismissed'
}
