import { candidatesOf, type ShownCandidate } from '../../engine/admin/candidates.ts'
import type { CandidateSignal } from '../../registry/candidate-names.ts'
import { ActionButton } from '../design/form.tsx'
import { CsvLink, PagedTable, paged } from '../design/list.tsx'
import { countText, Empty, PageHead } from '../design/parts.tsx'
import { type Column, countColumn, textColumn, timeColumn } from '../design/table.tsx'
import { csvFile } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/candidates'

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

/** The candidates of the organization, or those that were dismissed. */
function candidatesView({ site, organization, request }: Visit): readonly ShownCandidate[] {
  return candidatesOf(site.store, site.registry, organization.id, isDismissedList(request.query))
}

function isDismissedList(query: URLSearchParams): boolean {
  return query.get('show') === 'dismissed'
}

/** Names that no platform has and that look like AI services. */
function Candidates({ visit }: { readonly visit: Visit }) {
  const { query } = visit.request
  const rows = paged(candidatesView(visit), query)
  const isDismissed = isDismissedList(query)
  return (
    <>
      <PageHead
        title="Candidates"
        about="Names in logs that no platform has and that look like AI services. They are guesses, and count nowhere"
      >
        {rows.total > 0 && <CsvLink path={PATH} query={query} />}
      </PageHead>
      <PagedTable
        {...{ visit, id: 'candidates', label: 'Candidates', rows }}
        title={isDismissed ? 'Dismissed' : 'Candidates'}
        columns={[...COLUMNS, ...(isDismissed ? [buttonColumn('Restore')] : [ADD, buttonColumn('Dismiss')])]}
        empty={
          <Empty title={isDismissed ? 'No dismissed candidate' : 'No candidate'}>
            <p class="muted">Candidates appear here when messages of logs name them.</p>
          </Empty>
        }
      />
      <p class="small">
        {isDismissed ? <a href={PATH}>Candidates</a> : <a href={`${PATH}?show=dismissed`}>Dismissed candidates</a>}
      </p>
    </>
  )
}

const COLUMNS: readonly Column<ShownCandidate>[] = [
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
  timeColumn('first-seen', 'First seen', ({ firstSeenMs }) => firstSeenMs),
  timeColumn('last-seen', 'Last seen', ({ lastSeenMs }) => lastSeenMs),
]

const ADD: Column<ShownCandidate> = {
  id: 'add',
  name: 'Add',
  action: 'registry.add',
  quiet: true,
  cell: ({ name }) => (
    <a href={`/own-platforms?${new URLSearchParams({ name, domains: name })}`} aria-label={`Add ${name}`}>
      Add
    </a>
  ),
}

function buttonColumn(word: 'Dismiss' | 'Restore'): Column<ShownCandidate> {
  const verb = word.toLowerCase()
  return {
    id: verb,
    name: word,
    action: 'candidate.dismiss',
    quiet: true,
    cell: ({ name }) => (
      <ActionButton action={`${PATH}/${encodeURIComponent(name)}/${verb}`} label={`${word} ${name}`}>
        {word}
      </ActionButton>
    ),
  }
}

export const CANDIDATE_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => {
    const done = {
      dismissed: 'The candidate is dismissed. It stays dismissed when it is requested again',
      restored: 'The candidate is listed again',
    }
    return visit.page('Candidates', PATH, Candidates({ visit }), { done })
  }),
  csvFile(PATH, 'discovery.read', COLUMNS, candidatesView),
  changeForm(`${PATH}/:name/dismiss`, 'candidate.dismiss', (given) => given, `${PATH}?done=dismissed`),
  changeForm(`${PATH}/:name/restore`, 'candidate.restore', (given) => given, `${PATH}?show=dismissed&done=restored`),
]
