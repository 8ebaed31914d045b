import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { Store } from '../../engine/store/store.ts'
import { content, publishedList } from '../support/assessments.ts'
import { ALL_SCOPES, admin, run, runAdmin, startService } from '../support/programs.ts'

type Row = Readonly<Record<string, unknown>>

/** Writes a file for posture-admin assessment import. */
function fileIn(directory: string, answers: Parameters<typeof content>[1]): string {
  const { frameworkId, title, categories } = content('hipaa', answers)
  const file = join(directory, 'assessment.json')
  writeFileSync(file, JSON.stringify({ version: 1, framework_id: frameworkId, title, categories }))
  return file
}

t.test('an assessment goes from its draft to the API of a running service', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', directory]
  const service = await startService(directory)
  t.teardown(() => service.child.kill('SIGKILL'))
  const keys: Record<string, string> = {}
  for (const name of ['Acme', 'Other']) {
    await admin('organization', 'create', name, '--domain', 'x.example', ...data)
    const [key] = await admin('key', 'create', 'test', ...ALL_SCOPES, '--org', name, ...data)
    keys[name] = String(key?.['key'])
  }
  const dispatcher = new Agent({ connect: { ca: readFileSync(join(directory, 'tls/certificate.pem')) } })
  t.teardown(() => dispatcher.close())
  const get = async (list: string, name = 'Acme'): Promise<Row[]> => {
    const answer = await request(`https://localhost:${service.apiPort}/api/v1/${list}`, {
      dispatcher,
      headers: { 'x-api-key': keys[name] ?? '' },
    })
    return ((await answer.body.json()) as Record<string, Row[]>)[list] ?? []
  }
  const ofAcme = ['--org', 'Acme', ...data]

  // Items of IG1 have the weight 3, those of IG2 have 2.
  const profile = '1.1,1.3,3.1'
  const ofSpring = ['--framework', 'cis-v8', '--title', 'Spring', '--profile', profile]
  const [made] = await admin('assessment', 'create', ...ofSpring, ...ofAcme)
  const shown = { framework_id: 'cis-v8', title: 'Spring', profile: '3 selected items' }
  t.match(made, { ...shown, status: 'draft', overall_score: null })
  const id = String(made?.['id']).slice(0, 8)
  const items = await admin('assessment', 'show', id, '--items', ...ofAcme)
  t.same(items.map(({ item_id }) => item_id).join(','), profile)
  const [asked] = await admin('assessment', 'show', id, '--item', '3.1', ...ofAcme)
  t.match(asked, {
    question: /\?$/,
    yes: String,
    partial: String,
    no: String,
    evidence: String,
    baselines: ['ig1', 'ig2', 'ig3'],
  })

  // The answers are imported from the exported spreadsheet, with one answer missing.
  const sheet = join(directory, 'answers.csv')
  await admin('assessment', 'export', id, '--format', 'csv', '--output', sheet, ...ofAcme)
  writeFileSync(sheet, readFileSync(sheet, 'utf8').replaceAll(',unanswered,', ',yes,').replace(',yes,', ',unanswered,'))
  const [imported] = await admin('assessment', 'import', sheet, '--framework', 'cis-v8', ...ofAcme)
  t.match(imported, { status: 'in_progress' })
  const ours = String(imported?.['id'])
  const early = await runAdmin(['assessment', 'complete', ours, ...ofAcme])
  t.match(early, { status: 5, stderr: 'posture-admin: CONFLICT 1 item is unanswered: 1.1\n' })
  const [progress, ...more] = await admin('assessment', 'show', ours, ...ofAcme)
  t.match(progress, { status: 'in_progress', overall_score: 100, grade: 'A', items: 3, unanswered: 1 })
  t.same(more, [], 'one object, as the API returns it')
  const [category] = (progress?.['categories'] ?? []) as Row[]
  t.match(category, {
    name: /^1 /,
    weight: 5,
    items: 2,
    score: 100,
    unanswered: ['1.1'],
  })
  for (const list of ['scores', 'recommendations', 'assessments']) t.same(await get(list), [], `${list}, in progress`)

  await admin('assessment', 'answer', ours, '1.1', 'no', '--note', '=once', ...ofAcme)
  const [completed] = await admin('assessment', 'complete', ours, ...ofAcme)
  // (3 x 0 + 2 x 100 + 3 x 100) / 8 = 62.5
  t.match(completed, { status: 'completed', overall_score: 63, grade: 'D' })
  const [score] = await get('scores')
  t.same(score, { framework_id: 'cis-v8', overall_score: 63, grade: 'D', completed_at: completed?.['completed_at'] })
  const [recommendation, ...others] = await get('recommendations')
  t.same(others, [])
  t.match(recommendation, {
    ...{ title: String(items[0]?.['recommendation']), priority: 1, status: 'open', framework_id: 'cis-v8' },
    category: /^1 /,
  })
  const [assessment] = await get('assessments')
  t.match(assessment, { id: ours, status: 'completed', overall_score: 63, started_at: imported?.['started_at'] })
  const scores = assessment?.['categories'] as Row[]
  t.same(scores[0], { ...scores[0], weight: 5, score: 40 })
  t.same(
    scores.slice(1).map(({ score }) => score),
    [100],
  )

  const [set] = await admin(
    'recommendation',
    'set',
    String(recommendation?.['id']).slice(0, 8),
    'in_progress',
    ...ofAcme,
  )
  t.match(set, { status: 'in_progress', item_id: '1.1' })
  t.match(await get('recommendations'), [{ id: recommendation?.['id'], status: 'in_progress' }])
  t.equal((await admin('recommendation', 'list', '--status', 'in_progress', ...ofAcme)).length, 1)
  t.equal((await admin('recommendation', 'list', '--framework', 'soc-2', ...ofAcme)).length, 0)

  for (const list of ['scores', 'recommendations', 'assessments'])
    t.same(await get(list, 'Other'), [], `${list} of Other`)
  const audit = await admin('audit', 'list', ...ofAcme)
  t.same(audit.map(({ action }) => action).slice(-5), [
    'assessment.create',
    'assessment.import',
    'assessment.change',
    'assessment.complete',
    'recommendation.status',
  ])
  const [next] = await admin('assessment', 'create', ...ofSpring, ...ofAcme)
  const suggest = ['assessment', 'suggest', String(next?.['id']), ...ofAcme]
  const suggested = await admin(...suggest)
  t.match(suggested, [
    { item_id: '1.1', answer: 'no', accepted: false, sources: [{ assessment_id: ours, item_id: '1.1' }] },
    { item_id: '1.3', answer: 'yes' },
    { item_id: '3.1', answer: 'yes' },
  ])
  t.match(await admin(...suggest, '--accept', '1.3'), [{ item_id: '1.3', accepted: true }])
  t.equal((await admin(...suggest)).length, 2)
  t.match(await runAdmin([...suggest, '--accept', '9.9']), { stderr: /NOT_FOUND no suggested answer for item "9.9"/ })
  const rows = await admin('assessment', 'crosswalk', 'nist-csf-2', 'cis-v8')
  t.match(rows.at(-1), { category: 'All', items: 153, mapping: 'published' })
  await admin('assessment', 'remove', String(next?.['id']), ...ofAcme)
  await admin('assessment', 'remove', id, ...ofAcme)
  t.equal((await admin('assessment', 'list', ...ofAcme)).length, 1)
})

t.test('all errors of a file are reported, one line each, and nothing is stored', async (t) => {
  const directory = t.testdir({ 'bad.csv': 'category,answer\n', 'bad.json': '{"version":2,"framework_id":"x"}' })
  const data = ['--data-dir', join(directory, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'x.example', ...data)
  const file = join(directory, 'bad.json')
  const { status, stdout, stderr } = await run('admin', ['assessment', 'import', file, '--org', 'Acme', ...data])
  t.equal(status, 2)
  t.equal(stdout, '')
  const lines = stderr.trimEnd().split('\n')
  t.equal(lines.length, 4)
  for (const [at, field] of ['version', 'framework_id', 'title', 'categories'].entries()) {
    t.equal(lines[at]?.startsWith(`posture-admin: ASSESSMENT_FILE ${file}: ${field}: found `), true, stderr)
  }
  const csv = await run('admin', [
    'assessment',
    'import',
    join(directory, 'bad.csv'),
    '--org',
    'Acme',
    '--framework',
    'hipaa',
    ...data,
  ])
  t.match(csv, {
    status: 2,
    stderr: /^posture-admin: ASSESSMENT_FILE \S+: row 1: found no column category_weight, [^\n]*\n$/,
  })
  t.same(await admin('assessment', 'list', '--org', 'Acme', ...data), [])
})

for (const point of ['assessment:completed', 'assessment:recommended', 'assessment:published']) {
  t.test(
    `an assessment of a process killed at ${point} is still in progress, and the next attempt completes it`,
    async (t) => {
      const directory = t.testdir()
      const data = ['--org', 'Acme', '--data-dir', join(directory, 'data')]
      await admin('organization', 'create', 'Acme', '--domain', 'x.example', ...data.slice(2))
      // An earlier assessment is completed. The second one changes its recommendations.
      await admin('assessment', 'import', fileIn(directory, { A: 'no', B: 'no' }), '--complete', ...data)
      const [made] = await admin(
        'assessment',
        'import',
        fileIn(directory, { A: 'yes', B: 'partial', C: 'no' }),
        ...data,
      )
      const state = async (): Promise<unknown> => {
        const store = new Store(join(directory, 'data'))
        const id = store.organizations.find('Acme')?.id ?? ''
        const found = {
          assessments: store.assessments.ofOrganization(id),
          recommendations: store.recommendations.ofOrganization(id),
          audit: store.auditLog.ofOrganization(id),
          published: (['scores', 'recommendations', 'assessments'] as const).map((list) =>
            publishedList(store, id, list),
          ),
        }
        await store.close()
        return found
      }
      const before = await state()
      const complete = ['assessment', 'complete', String(made?.['id']), ...data]
      t.match(await run('admin', complete, { POSTURE_FAULT_POINT: point }), { signal: 'SIGKILL' })
      t.same(await state(), before)
      t.match(await runAdmin(complete), { status: 0 })
      const after = (await state()) as { published: Row[][] }
      t.match(after.published, [
        [{ framework_id: 'hipaa', overall_score: 33, grade: 'F' }],
        Array.from({ length: 3 }, () => ({ framework_id: 'hipaa' })),
        [{ overall_score: 33 }, { overall_score: 0 }],
      ])
      const statuses = Object.fromEntries((after.published[1] ?? []).map(({ title, status }) => [title, status]))
      t.same(statuses, { 'Do A.': 'completed', 'Do B.': 'open', 'Do C.': 'open' })
    },
  )
}

t.test('when two processes complete an assessment at once, one succeeds and the other is rejected', async (t) => {
  const directory = t.testdir()
  const data = ['--org', 'Acme', '--data-dir', join(directory, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'x.example', ...data.slice(2))
  for (let round = 1; round <= 3; round++) {
    const [made] = await admin('assessment', 'import', fileIn(directory, { A: 'no', B: 'yes' }), ...data)
    const complete = ['assessment', 'complete', String(made?.['id']), ...data]
    const ended = await Promise.all([run('admin', complete), run('admin', complete)])
    t.same(ended.map(({ status }) => status).sort(), [0, 5], ended.map(({ stderr }) => stderr).join())
    t.match(ended.find(({ status }) => status === 5)?.stderr, /CONFLICT the assessment is completed: /)
    const audit = await admin('audit', 'list', ...data)
    t.equal(audit.filter(({ action }) => action === 'assessment.complete').length, round)
    t.equal((await admin('recommendation', 'list', ...data)).length, 1)
  }
})

const MISUSES: readonly { readonly words: string; readonly status?: number; readonly line: RegExp }[] = [
  { words: 'assessment create', line: /USAGE required option '--framework <framework>' not specified/ },
  { words: 'assessment create --framework cis', line: /expected one of ai-security, / },
  { words: 'assessment answer 00000000 A 101', line: /expected yes, partial, no, .* from 0 to 100/ },
  { words: 'assessment answer 00000000 A no --note a\u0007', line: /expected text of up to 2000 bytes/ },
  {
    words: 'assessment show 00000000',
    status: 5,
    line: /NOT_FOUND no assessment "00000000"; posture-admin assessment list shows all$/,
  },
  { words: 'assessment export 0000', line: /USAGE assessment "0000": expected its id, / },
  { words: 'assessment export 00000000 --format xlsx', line: /expected one of json, csv/ },
  { words: 'assessment import /nowhere.csv', line: /ASSESSMENT_FILE \/nowhere\.csv: no such file$/ },
  { words: 'recommendation set 00000000 done', line: /expected one of open, in_progress, completed, dismissed/ },
]
t.test('each misuse is one clear error line', async (t) => {
  const data = ['--data-dir', t.testdir()]
  await admin('organization', 'create', 'Acme', '--domain', 'x.example', ...data)
  for (const { words, status = 2, line } of MISUSES) {
    const ended = await runAdmin([...words.split(' '), '--org', 'Acme', ...data])
    t.equal(ended.status, status, `${words}: ${ended.stderr}`)
    t.match(ended.stderr.trimEnd(), line, words)
    t.equal(ended.stderr.trimEnd().split('\n').length, 1, words)
  }
})
