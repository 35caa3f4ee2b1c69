/* A plugin that tries the functions of env.h and logging.h, and gives a report as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tfrt_capi.h"

typedef struct { char folder[256]; int mode; } Env;

static void* env_create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    Env* env = calloc(1, sizeof *env);
    TF_OpKernelConstruction_GetAttrString(c, "folder", env->folder, sizeof env->folder - 1, s);
    TF_OpKernelConstruction_GetAttrInt32(c, "mode", &env->mode, s);
    if (TF_GetCode(s) != TF_OK) TF_OpKernelConstruction_Failure(c, s);
    TF_DeleteStatus(s);
    return env;
}

static void work(void* place) { *(int*)place = 42; }

#define SAY(...) (at += (size_t)snprintf(report + at, sizeof report - at, __VA_ARGS__))

static size_t files(const char* folder, char* to, size_t room, TF_Status* s) {
    static char report[4096];
    size_t at = 0;
    char a[512], x[600];
    snprintf(a, sizeof a, "%s/a", folder);
    snprintf(x, sizeof x, "%s/x.txt", a);
    TF_CreateDir(a, s);
    SAY("create %d", TF_GetCode(s));
    TF_CreateDir(a, s);
    SAY(", again %d\n", TF_GetCode(s));
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile(x, &file, s);
    TF_AppendWritableFile(file, "hello ", 6, s);
    TF_AppendWritableFile(file, "world", 5, s);
    TF_FlushWritableFile(file, s);
    TF_FileStatistics stats;
    TF_FileStat(x, &stats, s);
    SAY("flushed: %d bytes, folder %d, recent %d\n", (int)stats.length, stats.is_directory,
        (uint64_t)stats.mtime_nsec / 1000000000 + 1000 > TF_NowSeconds());
    TF_SyncWritableFile(file, s);
    TF_CloseWritableFile(file, s);
    SAY("closed %d\n", TF_GetCode(s));
    TF_FileStat(a, &stats, s);
    SAY("folder %d\n", stats.is_directory);
    TF_StringStream* names = TF_GetChildren(a, s);
    const char* name = NULL;
    while (TF_StringStreamNext(names, &name)) SAY("has %s\n", name);
    SAY("behind the last: %s\n", name ? name : "null");
    TF_StringStreamDone(names);
    TF_DeleteDir(a, s);
    SAY("not empty: %d\n", TF_GetCode(s));
    int64_t n_files = -1, n_folders = -1;
    TF_DeleteRecursively(a, &n_files, &n_folders, s);
    SAY("deleted: %d, left %d %d\n", TF_GetCode(s), (int)n_files, (int)n_folders);
    TF_DeleteRecursively(a, &n_files, &n_folders, s);
    SAY("again: %d, left %d %d\n", TF_GetCode(s), (int)n_files, (int)n_folders);
    TF_DeleteFile(x, s);
    SAY("gone: %d%s\n", TF_GetCode(s), strstr(TF_Message(s), "x.txt; No such file") ? "" : TF_Message(s));
    names = TF_GetChildren(a, s);
    SAY("no folder: %d %d\n", TF_GetCode(s), TF_StringStreamNext(names, &name));
    TF_StringStreamDone(names);
    memcpy(to, report, at < room ? at : room);
    return at;
}

static size_t others(char* to, size_t room, TF_Status* s) {
    static char report[4096];
    size_t at = 0;
    const char* text = NULL;
    TF_StringStream* folders = TF_GetLocalTempDirectories();
    SAY("folder for a while: %d\n", TF_StringStreamNext(folders, &text) && text[0] == '/');
    TF_StringStreamDone(folders);
    char* temporary = TF_GetTempFileName("txt");
    size_t len = strlen(temporary);
    TF_DeleteFile(temporary, s);
    SAY("file for a while: %s %d\n", temporary + len - 4, TF_GetCode(s));
    free(temporary);
    uint64_t seconds = TF_NowSeconds(), nanos = TF_NowNanos(), micros = TF_NowMicros();
    SAY("clock: %d\n", nanos / 1000000000 - seconds < 60 && micros / 1000000 - seconds < 60);
    TF_ThreadOptions options;
    TF_DefaultThreadOptions(&options);
    int answer = 0;
    TF_Thread* thread = TF_StartThread(&options, "worker", work, &answer);
    TF_JoinThread(thread);
    SAY("thread: %d, node %d\n", answer, options.numa_node);
    void* library = TF_LoadSharedLibrary("libm.so.6", s);
    SAY("library: %d", TF_GetCode(s));
    double (*cosine)(double) = (double (*)(double))TF_GetSymbolFromLibrary(library, "cos", s);
    SAY(", cos(0) = %.1f", cosine ? cosine(0) : -1);
    void* nothing = TF_GetSymbolFromLibrary(library, "no_such_symbol", s);
    SAY(", no symbol: %d %d", nothing == NULL, TF_GetCode(s));
    nothing = TF_LoadSharedLibrary("libnowhere.so", s);
    SAY(", no library: %d %d\n", nothing == NULL, TF_GetCode(s));
    TF_Log(TF_WARNING, "plain");
    TF_Log(TF_ERROR, "%d %s %ld %d %d %d %s %.1f %.2f %c", 1, "two", 3L, 4, 5, 6, "seven", 8.0, 9.25, 'x');
    TF_Log(TF_INFO, "%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %d", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11);
    TF_Log(TF_INFO, "%*d.", 2000, 7);
    TF_VLog(0, "details %d", 0);
    TF_VLog(99, "too many details %d", 99);
    TF_DVLog(0, "for authors %d", 0);
    memcpy(to, report, at < room ? at : room);
    return at;
}

static void env_compute(void* state, TF_OpKernelContext* ctx) {
    Env* env = state;
    TF_Status* s = TF_NewStatus();
    char report[4096];
    size_t len = 0;
    TF_WritableFileHandle* file = NULL;
    switch (env->mode) {
    case 0: len = files(env->folder, report, sizeof report, s); break;
    case 1: len = others(report, sizeof report, s); break;
    case 2:
        TF_NewWritableFile("/dev/null", &file, s);
        TF_CloseWritableFile(file, s);
        TF_AppendWritableFile(file, "x", 1, s);
        break;
    case 3: TF_Log(TF_FATAL, "out of %s", "luck"); break;
    case 4: TF_Log(TF_INFO, NULL); break;
    case 5: TF_GetSymbolFromLibrary(s, "cos", s); break;
    case 6: TF_StartThread(NULL, "none", NULL, NULL); break;
    case 7: TF_Log((TF_LogLevel)9, "odd"); break;
    }
    int64_t dims[] = {(int64_t)len};
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, (TF_DataType)4, dims, 1, len, s);
    memcpy(TF_TensorData(z), report, len);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}

void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("TestEnv");
    TF_OpDefinitionBuilderAddAttr(op, "folder: string = ''");
    TF_OpDefinitionBuilderAddAttr(op, "mode: int = 0");
    TF_OpDefinitionBuilderAddOutput(op, "report: uint8");
    TF_OpDefinitionBuilderSetIsStateful(op, true);
    TF_RegisterOpDefinition(op, s);
    TF_RegisterKernelBuilder("TestEnv", TF_NewKernelBuilder("TestEnv", "CPU", env_create, env_compute, free), s);
    TF_DeleteStatus(s);
}
