import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { gradeOf } from '../../assess/grade.ts'
import { answer as answerRule, note as noteRule, readAnswer } from '../../assess/rules.ts'
import { scoreOf } from '../../assess/score.ts'
import { itemsOf, unansweredOf } from '../../assess/states.ts'
import { loadTemplates } from '../../assess/templates.ts'
import type { Answer, Assessment, AssessmentCategory } from '../../store/assessments.ts'
import { FRAMEWORK_IDS, FRAMEWORKS, type FrameworkId } from '../../store/framework.ts'
import { byIdPrefix } from '../id-prefix.ts'
import { addAssessmentExport, addAssessmentImport } from './assessment-file.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin assessment create | list | show | answer | complete | remove | export | import | frameworks */
export function addAssessmentCommands(program: Command): void {
  const assessment = program
    .command('assessment')
    .description('assessments of an organization against a framework, from draft to score')
  addCreate(assessment)
  addList(assessment)
  addShow(assessment)
  addAnswer(assessment)
  addComplete(assessment)
  addRemove(assessment)
  addAssessmentExport(assessment)
  addAssessmentImport(assessment, printAssessments)
  addFrameworks(assessment)
}

function addCreate(assessment: Command): void {
  const create = ofOrganization(
    changeOptions(assessment.command('create').description("begin an assessment with a framework's own items")),
  )
    .addOption(
      new Option('--framework <framework>', 'what is assessed').choices(FRAMEWORK_IDS).makeOptionMandatory(true),
    )
    .option('--title <title>', "what it is called in lists; by default the framework's name")
  create.action((options: { org: string; framework: FrameworkId; title?: string }) =>
    withStore(create, ({ administration }) => {
      const organization = administration.organization(options.org)
      printAssessments(create, [administration.assessments.create(organization, options.framework, options.title)])
    }),
  )
}

function addList(assessment: Command): void {
  const list = ofOrganization(
    sharedOptions(assessment.command('list').description('show the assessments of an organization, newest first')),
  )
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      const all = store.assessments.ofOrganization(administration.organization(options.org).id)
      const newestFirst = (a: Assessment, b: Assessment): number =>
        b.startedAtMs - a.startedAtMs || (a.id < b.id ? -1 : 1)
      printAssessments(list, all.sort(newestFirst))
    }),
  )
}

function addShow(assessment: Command): void {
  const one = ofOrganization(
    sharedOptions(
      assessment.command('show <id>').description('show how far an assessment is, by the beginning of its id'),
    ),
  ).option('--items', 'show every item with its answer instead')
  one.action((id: string, options: { org: string; items?: boolean }) =>
    withStore(one, ({ store, administration }) => {
      const all = store.assessments.ofOrganization(administration.organization(options.org).id)
      const found = byIdPrefix(all, id, 'assessment')
      const categories = store.assessments.categories(found)
      if (options.items) {
        printItems(one, categories)
        return
      }
      printProgress(one, found, categories)
      printCategories(one, categories)
    }),
  )
}

function addAnswer(assessment: Command): void {
  const answer = ofOrganization(
    changeOptions(assessment.command('answer <id> <item>').description('answer an item of an assessment')),
  )
    .addArgument(
      new Argument('<answer>', 'yes, partial, no, not_applicable, unanswered, or 0 to 100').argParser(answerOf),
    )
    .addOption(new Option('--note <text>', 'what the answer rests on').argParser(noteOf))
  answer.action((id: string, item: string, given: Answer, options: { org: string; note?: string }) =>
    withStore(answer, ({ store, administration }) => {
      const organization = administration.organization(options.org)
      const changed = administration.assessments.answer(organization, id, item, given, options.note)
      printProgress(answer, changed, store.assessments.categories(changed))
    }),
  )
}

function addComplete(assessment: Command): void {
  const complete = ofOrganization(
    changeOptions(
      assessment.command('complete <id>').description('end an assessment for ever; the API shows its score at once'),
    ),
  )
  complete.action((id: string, options: { org: string }) =>
    withStore(complete, ({ administration }) => {
      const organization = administration.organization(options.org)
      printAssessments(complete, [administration.assessments.complete(organization, id)])
    }),
  )
}

function addRemove(assessment: Command): void {
  const remove = ofOrganization(
    changeOptions(assessment.command('remove <id>').description('remove an assessment that is not completed')),
  )
  remove.action((id: string, options: { org: string }) =>
    withStore(remove, ({ administration }) => {
      printAssessments(remove, [administration.assessments.remove(administration.organization(options.org), id)])
    }),
  )
}

function addFrameworks(assessment: Command): void {
  const frameworks = assessment
    .command('frameworks')
    .description('show the frameworks that can be assessed')
    .option('--json', 'print JSON on a terminal, too')
  frameworks.action(() => {
    const templates = loadTemplates()
    show(frameworks, {
      columns: [
        ['Framework', 'framework_id'],
        ['Name', 'name'],
        ['Categories', 'categories'],
        ['Items', 'items'],
      ],
      rows: FRAMEWORK_IDS.map((id) => ({
        framework_id: id,
        name: FRAMEWORKS[id],
        categories: templates[id].length,
        items: templates[id].reduce((count, { items }) => count + items.length, 0),
      })),
    })
  })
}

function answerOf(text: string): Answer {
  const given = answerRule.safeParse(readAnswer(text))
  if (given.success) return given.data
  throw new InvalidArgumentError(given.error.issues[0]?.message ?? '')
}

function noteOf(text: string): string {
  const given = noteRule.safeParse(text)
  if (given.success) return given.data
  throw new InvalidArgumentError(given.error.issues[0]?.message ?? '')
}

function printAssessments(command: Command, assessments: readonly Assessment[]): void {
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Framework', 'framework_id'],
      ['Title', 'title'],
      ['Status', 'status'],
      ['Score', 'overall_score'],
      ['Grade', 'grade'],
      ['Started', 'started_at'],
      ['Completed', 'completed_at'],
    ],
    rows: assessments.map((each) => ({
      id: each.id,
      framework_id: each.frameworkId,
      title: each.title,
      status: each.status,
      overall_score: each.result?.overallScore ?? null,
      grade: each.result?.grade ?? null,
      started_at: timeText(each.startedAtMs),
      completed_at: timeText(each.completedAtMs),
      updated_at: timeText(each.updatedAtMs),
    })),
  })
}

/** The score so far is that of what is answered; for a completed assessment it is the score. */
function printProgress(command: Command, assessment: Assessment, categories: readonly AssessmentCategory[]): void {
  const { overallScore } = scoreOf(categories)
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Framework', 'framework_id'],
      ['Title', 'title'],
      ['Status', 'status'],
      ['Score so far', 'overall_score'],
      ['Grade', 'grade'],
      ['Items', 'items'],
      ['Unanswered', 'unanswered'],
    ],
    rows: [
      {
        id: assessment.id,
        framework_id: assessment.frameworkId,
        title: assessment.title,
        status: assessment.status,
        overall_score: assessment.result?.overallScore ?? overallScore,
        grade: assessment.result?.grade ?? (overallScore === null ? null : gradeOf(overallScore)),
        items: itemsOf(categories).length,
        unanswered: unansweredOf(categories).length,
      },
    ],
  })
}

function printCategories(command: Command, categories: readonly AssessmentCategory[]): void {
  const { categories: scores } = scoreOf(categories)
  show(command, {
    columns: [
      ['Category', 'category'],
      ['Weight', 'weight'],
      ['Items', 'items'],
      ['Average', 'score'],
      ['Unanswered', 'unanswered'],
    ],
    rows: categories.map((category, at) => ({
      category: category.name,
      weight: category.weight,
      items: category.items.length,
      score: scores[at]?.score ?? null,
      unanswered: unansweredOf([category]).map(({ id }) => id),
    })),
    wrapLast: true,
  })
}

function printItems(command: Command, categories: readonly AssessmentCategory[]): void {
  show(command, {
    columns: [
      ['Item', 'item_id'],
      ['Category', 'category'],
      ['Weight', 'weight'],
      ['Priority', 'priority'],
      ['Answer', 'answer'],
      ['Note', 'note'],
      ['Check', 'title'],
    ],
    rows: categories.flatMap((category) =>
      category.items.map((item) => ({
        item_id: item.id,
        category: category.name,
        title: item.title,
        weight: item.weight,
        priority: item.priority,
        answer: item.answer,
        note: item.note,
        recommendation: item.recommendation,
      })),
    ),
    wrapLast: true,
  })
}
