// Runs a declarative pipeline as far as its steps need no Jenkins: `RunPipeline.groovy JENKINSFILE WORKSPACE`.
//
// It is no Jenkins. It knows the directives and steps that podperf's Jenkinsfile may use, with the arguments that their
// documentation names (https://www.jenkins.io/doc/book/pipeline/syntax/, and the pages of the plugins), and refuses all
// others. `sh` runs its script for real, as Jenkins does it. The last line of the output is the result of the build.
import groovy.io.FileType
import groovy.transform.Field
import java.nio.file.FileSystems

class Refused extends RuntimeException { Refused(String message) { super(message) } }
class Failed extends RuntimeException { Failed(String message) { super(message) } }

// A block of the pipeline: which names it may have, and what they do.
class Block {
    String name
    Map<String, Closure> directives
    Map<String, Object> values = [:]
    boolean assigns = false // whether the block is a list of NAME = value

    def run(Closure body) {
        body.delegate = this
        body.resolveStrategy = Closure.DELEGATE_ONLY
        body.call()
    }

    def methodMissing(String called, args) {
        if (!directives.containsKey(called)) throw new Refused("there is no ${called} in ${name}")
        directives[called].call(*args)
    }

    def propertyMissing(String wanted) {
        if (!values.containsKey(wanted)) throw new Refused("there is no ${wanted} in ${name}")
        values[wanted]
    }

    def propertyMissing(String wanted, value) {
        if (!assigns) throw new Refused("${name} assigns ${wanted}")
        values.env[wanted] = value.toString()
    }
}

@Field Map<String, String> env = new HashMap<String, String>(System.getenv())
@Field List<String> results = ['SUCCESS', 'UNSTABLE', 'FAILURE']
@Field String result = 'SUCCESS'
@Field File workspace

void becomes(String worse) {
    result = results[Math.max(results.indexOf(result), results.indexOf(worse))]
}

Map named(String step, Map given, Map<String, Class> known, List<String> required) {
    given.each { key, value ->
        if (!known.containsKey(key)) throw new Refused("${step} has no argument ${key}")
        if (!(known[key].isInstance(value) || known[key] == String && value instanceof GString))
            throw new Refused("${step}: ${key} is a ${known[key].simpleName}")
    }
    required.each { if (!given.containsKey(it)) throw new Refused("${step} needs the argument ${it}") }
    given
}

int shell(String script) {
    def process = new ProcessBuilder('sh', '-xe', '-c', script).directory(workspace).redirectErrorStream(true)
    process.environment().clear()
    process.environment().putAll(env)
    def started = process.start()
    started.inputStream.eachLine { println "sh: ${it}" }
    started.waitFor()
}

def sh(arguments) {
    def given = arguments instanceof Map ? named('sh', arguments, [script: String, returnStatus: Boolean], ['script'])
                                         : [script: arguments.toString()]
    int code = shell(given.script.toString())
    if (given.returnStatus) return code
    if (code != 0) throw new Failed("script returned exit code ${code}")
}

void junit(Map arguments) {
    named('junit', arguments, [testResults: String, allowEmptyResults: Boolean], ['testResults'])
    def file = new File(workspace, arguments.testResults.toString())
    if (!file.exists()) {
        if (!arguments.allowEmptyResults) throw new Failed("there is no ${file}")
        return
    }
    int failures = new XmlSlurper().parse(file).depthFirst().count { it.name() == 'failure' }
    println "junit: ${failures} failed"
    if (failures) becomes('UNSTABLE')
}

void publishHTML(Map arguments) {
    named('publishHTML', arguments, [target: Map], ['target'])
    def known = [reportName: String, reportDir: String, reportFiles: String, reportTitles: String,
                 allowMissing: Boolean, keepAll: Boolean, alwaysLinkToLastBuild: Boolean]
    def target = named('publishHTML', arguments.target, known,
                       ['reportName', 'reportDir', 'reportFiles', 'allowMissing', 'keepAll', 'alwaysLinkToLastBuild'])
    def files = target.reportFiles.toString().split(',')
    def there = files.findAll { new File(workspace, "${target.reportDir}/${it}").exists() }
    println "publishHTML: ${there.join(',')}"
    if (!there && !target.allowMissing) throw new Failed('no HTML report')
}

void archiveArtifacts(Map arguments) {
    named('archiveArtifacts', arguments, [artifacts: String, allowEmptyArchive: Boolean], ['artifacts'])
    def matches = FileSystems.default.getPathMatcher("glob:${arguments.artifacts}")
    def files = []
    workspace.eachFileRecurse(FileType.FILES) { if (matches.matches(workspace.toPath().relativize(it.toPath()))) files << it }
    println "archiveArtifacts: ${files.size()} files"
    if (!files && !arguments.allowEmptyArchive) throw new Failed('no artifacts')
}

Map<String, Closure> steps() {
    Map<String, Closure> found = [:]
    found.sh = { arguments -> sh(arguments) }
    found.error = { message -> throw new Failed(message.toString()) }
    found.unstable = { message -> println "unstable: ${message}"; becomes('UNSTABLE') }
    found.junit = { Map arguments -> junit(arguments) }
    found.publishHTML = { Map arguments -> publishHTML(arguments) }
    found.archiveArtifacts = { Map arguments -> archiveArtifacts(arguments) }
    found.script = { Closure body -> new Block(name: 'script', directives: found, values: [env: env]).run(body) }
    found
}

void failing(Closure body) {
    try {
        body()
    } catch (Failed failed) {
        println "failed: ${failed.message}"
        becomes('FAILURE')
    }
}

def (jenkinsfile, folder) = args.collect { new File(it) }
workspace = folder
env.WORKSPACE = folder.path
List<List> stages = []
Map<String, Closure> post = [:]
def within = { String name, Map directives, Map values = [:], boolean assigns = false ->
    return { Closure body -> new Block(name: name, directives: directives, values: values, assigns: assigns).run(body) }
}
def options = [
    disableConcurrentBuilds: { -> },
    timeout: { Map given -> named('timeout', given, [time: Integer, unit: String], ['time']) },
    logRotator: { Map given -> named('logRotator', given, [numToKeepStr: String], []) },
    buildDiscarder: { Map given -> },
]
def string = { Map given ->
    named('string', given, [name: String, defaultValue: String, description: String], ['name'])
    env.putIfAbsent(given.name, given.defaultValue ?: '') // a parameter is a variable of each shell
}
def stage = { String name, Closure body ->
    boolean has = false
    new Block(name: "stage ${name}", directives: [steps: { Closure all -> stages << [name, all]; has = true }]).run(body)
    if (!has) throw new Refused("stage ${name} has no steps")
}
def pipeline = [
    agent: within('agent', [label: { String label -> println "agent: ${label}" }]),
    options: within('options', options),
    parameters: within('parameters', [string: string]),
    environment: within('environment', [:], [env: env], true),
    stages: within('stages', [stage: stage]),
    post: within('post', [always: { Closure body -> post.always = body }]),
]
def binding = new Binding([pipeline: within('pipeline', pipeline)])
new GroovyShell(getClass().classLoader, binding).evaluate(jenkinsfile)
if (!stages) throw new Refused('the pipeline has no stages')

def run = { String name, Closure body -> new Block(name: name, directives: steps(), values: [env: env]).run(body) }
for (each in stages) {
    println "stage: ${each[0]}"
    failing { run("the steps of ${each[0]}", each[1]) }
    if (result == 'FAILURE') break // the stages behind a failed one are skipped
}
if (post.always) failing { run('post', post.always) }
println "result: ${result}"
