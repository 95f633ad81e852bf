// Runs a declarative pipeline as far as its steps need no Jenkins: `RunPipeline.groovy JENKINSFILE WORKSPACE`.
//
// It is no Jenkins: it passes over whatever changes nothing here, as options do. `sh` runs its script for real, as
// Jenkins does it. The last line of the output is the result of the build.
import groovy.io.FileType
import java.nio.file.Files
import java.nio.file.FileSystems
import java.nio.file.StandardCopyOption

class Failed extends RuntimeException { Failed(String message) { super(message) } }
class PassedOver extends RuntimeException {}

// The names that a pipeline uses, within each of its blocks.
class Pipeline {
    File workspace
    Map<String, String> env
    String result = 'SUCCESS'
    String stageName

    def run(Closure block) {
        block.delegate = this
        block.resolveStrategy = Closure.DELEGATE_ONLY
        block.call()
    }

    def methodMissing(String name, args) {
        if (args && args[-1] instanceof Closure) run(args[-1])
    }

    def propertyMissing(String name, value) {
        env[name] = value.toString()
    }

    void string(Map parameter) {
        env.putIfAbsent(parameter.name, parameter.defaultValue) // a parameter is a variable of each shell
    }

    void stage(String name, Closure block) {
        if (result == 'FAILURE') return // the stages behind a failed one are skipped
        stageName = name
        try {
            always(block)
        } catch (PassedOver ignored) {
        }
    }

    void when(Closure condition) { // stands first in its stage
        if (!run(condition)) throw new PassedOver()
    }

    boolean not(Closure condition) { !run(condition) }

    boolean changeRequest() { env.CHANGE_ID != null }

    void steps(Closure block) {
        println "stage: ${stageName}"
        run(block)
    }

    void always(Closure block) {
        try {
            run(block)
        } catch (Failed failed) {
            println "failed: ${failed.message}"
            result = 'FAILURE'
        }
    }

    def sh(Map given) {
        def process = new ProcessBuilder('sh', '-xe', '-c', given.script).directory(workspace).redirectErrorStream(true)
        process.environment().clear()
        process.environment().putAll(env)
        def started = process.start()
        started.inputStream.eachLine { println "sh: ${it}" }
        int code = started.waitFor()
        if (code != 0 && !given.returnStatus) throw new Failed("script returned exit code ${code}")
        code
    }

    def sh(String script) { sh(script: script) }

    void error(message) { throw new Failed(message.toString()) }

    void unstable(message) {
        println "unstable: ${message}"
        if (result == 'SUCCESS') result = 'UNSTABLE'
    }

    void junit(Map given) {
        def failed = found(given.testResults).sum { new XmlSlurper().parse(it).depthFirst().count { it.name() == 'failure' } }
        if (failed) unstable("junit: ${failed} failed")
    }

    List<File> found(patterns) {
        def matchers = patterns.toString().split(',').collect { FileSystems.default.getPathMatcher("glob:${it}") }
        def files = []
        workspace.eachFileRecurse(FileType.FILES) { files << it }
        files.findAll { file -> matchers.any { it.matches(workspace.toPath().relativize(file.toPath())) } }
    }

    void publishHTML(Map given) {
        def files = given.target.reportFiles.toString().split(',')
        def there = files.findAll { new File(workspace, "${given.target.reportDir}/${it}").exists() }
        println "publishHTML: ${there.join(',')}"
    }

    void archiveArtifacts(Map given) {
        found(given.artifacts).each {
            def copy = workspace.toPath().resolveSibling('artifacts').resolve(workspace.toPath().relativize(it.toPath()))
            Files.createDirectories(copy.parent)
            Files.copy(it.toPath(), copy, StandardCopyOption.REPLACE_EXISTING)
        }
    }
}

def (jenkinsfile, workspace) = args.collect { new File(it) }
def made = new Pipeline(workspace: workspace, env: new HashMap(System.getenv()) + [WORKSPACE: workspace.path])
new GroovyShell(getClass().classLoader, new Binding([pipeline: made.&run])).evaluate(jenkinsfile)
println "result: ${made.result}"
